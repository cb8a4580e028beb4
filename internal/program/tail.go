package program

import (
	"slices"
	"strings"
	"sync"
)

// The limits of a tail, in bytes and lines.
const (
	tailSize  = 8 << 10
	tailLines = 30
)

// tail is a writer that keeps the last bytes.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

// Write adds data and drops the oldest bytes.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, data...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data, t.cut = slices.Clone(t.data[extra:]), true
	}
	return len(data), nil
}

// text returns the last lines.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.data)
	if _, rest, ok := strings.Cut(text, "\n"); ok && t.cut {
		text = rest // from the beginning of a line
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
