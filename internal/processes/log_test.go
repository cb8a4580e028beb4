package processes

import (
	"bytes"
	"errors"
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
				var to bytes.Buffer
				kept, file := &Log{First: 10, Last: 10}, &Log{First: 10, Last: 10, To: &to}
				for rest := text; rest != ""; {
					n := min(size, len(rest))
					_, _ = kept.Write([]byte(rest[:n]))
					_, _ = file.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				if got := kept.Text(); got != want {
					t.Errorf("%.30q: got text %q, want %q", text, got, want)
				}
				if err := file.Finish(); err != nil || to.String() != want {
					t.Errorf("%.30q: got file %q, %v, want %q", text, to.String(), err, want)
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
	var to bytes.Buffer
	log := &Log{First: 1000, Last: 1000, To: &to}
	for range 1 << 12 {
		_, _ = log.Write(make([]byte, 32<<10))
	}
	if err := log.Finish(); err != nil || to.Len() > 2100 || cap(log.last) > 100<<10 {
		t.Errorf("%v; the file has %d bytes, and %d are in memory", err, to.Len(), cap(log.last))
	}
}

// full is a disk that is full.
type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

func TestLogOnFullDisk(t *testing.T) {
	want := errors.New("no space left")
	log := &Log{First: 10, Last: 10, To: full{want}}
	if n, err := log.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("Write = %d, %v; want 3 and no error: the program would end", n, err)
	}
	if err := log.Finish(); !errors.Is(err, want) {
		t.Errorf("Finish = %v, want %v", err, want)
	}
}
