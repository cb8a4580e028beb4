package processes

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Log is a writer that keeps the first and the last bytes of what a program prints, however much that is.
// Writing to it never fails.
type Log struct {
	// First and Last are how many bytes it keeps.
	First, Last int
	// To receives the first bytes at once, and with Finish the others that are kept. Nil keeps all in memory.
	To io.Writer

	mu    sync.Mutex
	size  int // of all that was written
	first []byte
	last  []byte // the last bytes of all, and some before them
	err   error  // of To
}

// Write adds data.
func (l *Log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := min(l.First-l.size, len(data)); room > 0 {
		if l.To == nil {
			l.first = append(l.first, data[:room]...)
		} else if l.err == nil {
			_, l.err = l.To.Write(data[:room])
		}
	}
	l.size += len(data)
	l.last = append(l.last, data...)
	if extra := len(l.last) - l.Last; extra > l.Last {
		l.last = slices.Clone(l.last[extra:])
	}
	return len(data), nil
}

// rest returns what is kept after the first bytes. If bytes are left out before it, it begins with a line that
// says how many, and then a whole line.
func (l *Log) rest() string {
	after := max(0, l.size-l.First) // the number of bytes that are not among the first
	text := string(l.last[max(0, len(l.last)-min(l.Last, after)):])
	if after == len(text) {
		return text
	}
	if _, lines, ok := strings.Cut(text, "\n"); ok {
		text = lines
	}
	return fmt.Sprintf("\n(admissiontest: %d bytes are left out here)\n%s", after-len(text), text)
}

// Text returns what is kept.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.first) + l.rest()
}

// Finish writes to To what is kept and was not written yet. Nothing must be written afterwards.
func (l *Log) Finish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = io.WriteString(l.To, l.rest())
	}
	return l.err
}

// Tail returns the last bytes, from the beginning of a line.
func (l *Log) Tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.last[max(0, len(l.last)-l.Last):])
	if _, rest, ok := strings.Cut(text, "\n"); ok && l.size > len(text) {
		return rest
	}
	return text
}

// Lines returns up to n of the last lines.
func (l *Log) Lines(n int) []string {
	lines := strings.Split(strings.TrimRight(l.Tail(), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
