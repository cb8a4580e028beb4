package redact

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Printable returns a string in which U+FFFD replaces the characters that a terminal executes (C0 except
// line end and tab, DEL, C1), those that change the direction of text, those that some readers take as
// the end of a line, those that XML forbids, and bytes that are not UTF-8.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\uFFFE', r == '\uFFFF':
		return unicode.ReplacementChar
	default:
		return r
	}
}

// EscapedJSON returns a JSON document with the same values in which each character that a Writer would change is
// escaped.
func EscapedJSON(document []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(document) {
		if printable(r) != r { // such characters, and "##[", only occur in JSON strings
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("##["), []byte(`#\u0023[`))
}

// NewWriter returns a Writer that writes to out, or if out is a Writer, to what that writes to.
func NewWriter(out io.Writer) *Writer {
	if inner, ok := out.(*Writer); ok {
		out = inner.out
	}
	return &Writer{out: out, start: true}
}

// NewColorWriter is NewWriter for text with [Colored] parts: it passes on their codes, so the text of
// others in it must have been passed through [Printable].
func NewColorWriter(out io.Writer) *Writer {
	w := NewWriter(out)
	w.colors = true
	return w
}

// Color is the colour of a string: a parameter of the ANSI code.
type Color string

// These are the colours that a Writer of NewColorWriter passes on.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
)

// Colored returns a string in a colour.
func Colored(color Color, text string) string {
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}

var colorCode = regexp.MustCompile(`^\x1b\[(31|32|33|0)m`)

// Writer is an io.Writer without control characters and without commands of CI systems. It keeps the state
// of the current line between two calls of Write, so a command that is written in parts is found too.
// NewWriter creates one. It is safe for use by several goroutines if out is, but lines can mix.
type Writer struct {
	out    io.Writer
	colors bool

	mu sync.Mutex
	// rest is the beginning of a character whose end was not written yet.
	rest []byte
	// start is true as long as the line has only white space, or characters that a reader may take as
	// white space.
	start bool
	// colon is true if the last character is the first colon of the line, and nothing but white space is
	// before it.
	colon bool
	// hashes is the number of "#" at the end of the text so far.
	hashes int
}

// Out returns what the Writer writes to.
func (w *Writer) Out() io.Writer { return w.out }

// Write writes text. The number is that of the bytes of text, as io.Writer demands.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var changed bytes.Buffer
	left := slices.Concat(w.rest, text)
	for w.rest = nil; len(left) > 0; {
		if code := colorCode.Find(left); w.colors && code != nil {
			changed.Write(code)
			left = left[len(code):]
			continue
		}
		if !utf8.FullRune(left) {
			w.rest = left
			break
		}
		r, size := utf8.DecodeRune(left)
		r = printable(r)
		if w.colon && r == ':' || w.hashes >= 2 && r == '[' {
			changed.WriteByte(' ')
		}
		changed.WriteRune(r)
		w.note(r)
		left = left[size:]
	}
	if _, err := w.out.Write(changed.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// note updates the state with one character.
func (w *Writer) note(r rune) {
	w.colon = w.start && r == ':'
	switch {
	case r == '\n':
		w.start = true
	case r > ' ' && r < 0x7f:
		w.start = false
	}
	if w.hashes++; r != '#' {
		w.hashes = 0
	}
}

// Escaped returns text as a Writer writes it at the beginning of a line.
func Escaped(text string) string {
	var out strings.Builder
	_, _ = io.WriteString(NewWriter(&out), text) // a strings.Builder returns no error
	return out.String()
}
