package console_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/console"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":                          "plain\n",
		"::error::x":                       ": :error::x",
		"a\n::error::x\n":                  "a\n: :error::x\n",
		"a\n \t ::stop-commands::x":        "a\n \t : :stop-commands::x",
		"a\r::error::x":                    "a\r: :error::x",
		"a\r\n::error::x":                  "a\r\n: :error::x",
		"a\v::x\f::y":                      "a\v: :x\f: :y",
		"a\u0085::x\u2028::y\u2029::z":     "a\u0085: :x\u2028: :y\u2029: :z",
		"a\n\u00a0\u3000\ufeff::error::x":  "a\n\u00a0\u3000\ufeff: :error::x",
		"\x00\x7f::x":                      "\x00\x7f: :x",
		":::":                              ": ::",
		"a::b ::c":                         "a::b ::c",
		": : x":                            ": : x",
		"##[error]x":                       "## [error]x",
		"a ##[group]x":                     "a ## [group]x",
		"###[x ##vso[task.setvariable]y":   "### [x ##vso[task.setvariable]y",
		"# [x] #[y] ## [z]":                "# [x] #[y] ## [z]",
		"\nv1.36.3: ::1 is not an address": "\nv1.36.3: ::1 is not an address",
	} {
		if got := console.Text(text); got != want {
			t.Errorf("Text(%q) = %q; want %q", text, got, want)
		}
	}
}

// A command that is written byte by byte is found too, and Write returns the length of
// what it was given.
func TestWriterInParts(t *testing.T) {
	const text = "a\n ::error::b ##[c\u2028::d"
	var out strings.Builder
	w := console.NewWriter(&out)
	for i := range len(text) {
		if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatalf("Write = %d, %v; want 1", n, err)
		}
	}
	if want := "a\n : :error::b ## [c\u2028: :d"; out.String() != want {
		t.Errorf("got %q; want %q", out.String(), want)
	}
	full := errors.New("disk full")
	if n, err := console.NewWriter(failing{full}).Write([]byte("::x")); n != 0 || !errors.Is(err, full) {
		t.Errorf("Write = %d, %v; want 0 and %v", n, err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

var _ io.Writer = failing{}
