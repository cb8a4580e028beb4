package processes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Log is a writer that keeps the first and the last bytes of what a program prints, however much that is.
// Writing to it never fails.
type Log struct {
	// First and Last are how many bytes it keeps.
	First, Last int

	mu    sync.Mutex
	size  int // of all that was written
	first []byte
	last  []byte // the last bytes of all, and some before them
}

// Write adds data.
func (l *Log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := min(l.First-l.size, len(data)); room > 0 {
		l.first = append(l.first, data[:room]...)
	}
	l.size += len(data)
	l.last = append(l.last, data...)
	if extra := len(l.last) - l.Last; extra > l.Last {
		l.last = slices.Clone(l.last[extra:])
	}
	return len(data), nil
}

// Text returns what is kept. If bytes are left out, a line says how many, and a whole line follows.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := max(0, l.size-l.First) // the number of bytes that are not among the first
	text := string(l.last[max(0, len(l.last)-min(l.Last, after)):])
	if after == len(text) {
		return string(l.first) + text
	}
	if _, lines, ok := strings.Cut(text, "\n"); ok {
		text = lines
	}
	return fmt.Sprintf("%s\n(admissiontest: %d bytes are left out here)\n%s", l.first, after-len(text), text)
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
