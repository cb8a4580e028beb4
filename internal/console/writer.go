package console

import (
	"bytes"
	"io"
	"strings"
)

// NewWriter returns a Writer that writes to out. It keeps the state of the current line
// between two calls of Write, so a command that is written in parts is found too. It is
// not safe for use by several goroutines unless out is, and then lines can mix.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out, start: true} }

// Writer is an io.Writer without commands of CI systems. NewWriter creates one.
type Writer struct {
	out io.Writer
	// start is true as long as the line has only white space, or bytes that a reader may
	// take as white space.
	start bool
	// colon is true if the last byte is the first colon of the line, and nothing but white
	// space is before it.
	colon bool
	// hashes is the number of "#" at the end of the text so far, last its last three bytes.
	hashes int
	last   [3]byte
}

// Write writes text. The number is that of the bytes of text, as io.Writer demands.
func (w *Writer) Write(text []byte) (int, error) {
	var changed bytes.Buffer
	for _, b := range text {
		if w.colon && b == ':' || w.hashes >= 2 && b == '[' {
			changed.WriteByte(' ')
		}
		changed.WriteByte(b)
		w.note(b)
	}
	if _, err := w.out.Write(changed.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// note updates the state with one byte.
func (w *Writer) note(b byte) {
	w.last = [3]byte{w.last[1], w.last[2], b}
	w.colon = w.start && b == ':'
	switch {
	case w.endsLine():
		w.start = true
	case b > ' ' && b < 0x7f:
		w.start = false
	}
	if w.hashes++; b != '#' {
		w.hashes = 0
	}
}

// endsLine reports whether the text so far ends with a line end of Unicode.
func (w *Writer) endsLine() bool {
	switch w.last[2] {
	case '\n', '\r', '\v', '\f':
		return true
	}
	last := string(w.last[:])
	return strings.HasSuffix(last, "\u0085") || last == "\u2028" || last == "\u2029"
}

// Text returns text as a Writer writes it at the beginning of a line.
func Text(text string) string {
	var out strings.Builder
	_, _ = io.WriteString(NewWriter(&out), text) // a strings.Builder returns no error
	return out.String()
}
