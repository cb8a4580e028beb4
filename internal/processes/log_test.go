package processes

import (
	"fmt"
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"a\nb":                          "a\nb",
		"0123456789abcdefghij":          "0123456789abcdefghij",
		"one\ntwo\nthree\nfour\nfive\n": "one\ntwo\nth\n(admissiontest: 9 bytes are left out here)\nfive\n",
		strings.Repeat("x", 1000):       "xxxxxxxxxx\n(admissiontest: 980 bytes are left out here)\nxxxxxxxxxx",
	} {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) {
			for _, size := range []int{1, 3, 7, 5000} { // of each Write
				kept := &Log{First: 10, Last: 10}
				for rest := text; rest != ""; {
					n := min(size, len(rest))
					_, _ = kept.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				if got := kept.Text(); got != want {
					t.Errorf("%.30q: got text %q, want %q", text, got, want)
				}
			}
		})
	}
}

func TestLogLines(t *testing.T) {
	log := &Log{Last: 20}
	if got := log.Lines(3); len(got) != 1 || got[0] != "" {
		t.Errorf("got %q of nothing", got)
	}
	for i := range 10 {
		_, _ = fmt.Fprintf(log, "line %d\n", i)
	}
	if got := strings.Join(log.Lines(3), ","); got != "line 8,line 9" {
		t.Errorf("got %q, want the whole lines of the last 20 bytes", got)
	}
	if got := strings.Join(log.Lines(1), ","); got != "line 9" {
		t.Errorf("got %q, want the last line", got)
	}
}

// A program that writes without end does not fill the memory.
func TestLogIsSmall(t *testing.T) {
	log := &Log{First: 1000, Last: 1000}
	for range 1 << 12 {
		_, _ = log.Write(make([]byte, 32<<10))
	}
	if text := log.Text(); len(text) > 2100 || cap(log.last) > 100<<10 {
		t.Errorf("the text has %d bytes, and %d are in memory", len(text), cap(log.last))
	}
}
