package redact_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/redact"
)

func TestEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":                             "plain\n",
		"::error::x":                          ": :error::x",
		"a\n::error::x\n":                     "a\n: :error::x\n",
		"a\n \t ::stop-commands::x":           "a\n \t : :stop-commands::x",
		"a\r::error::x":                       "a\ufffd::error::x",
		"a\r":                                 "a\ufffd",
		"a\r\n::error::x":                     "a\ufffd\n: :error::x",
		"\v::x\f::y":                          "\ufffd: :x\ufffd::y",
		"\u0085::x\u2028::y\u2029::z":         "\ufffd: :x\ufffd::y\ufffd::z",
		"a\x1b[31mb\x1b]0;t\ac\x7f\b":         "a\ufffd[31mb\ufffd]0;t\ufffdc\ufffd\ufffd",
		"\u009b31m \u202e \u2066 \u200f \xff": "\ufffd31m \ufffd \ufffd \ufffd \ufffd",
		"tab\tü €\u00a0":                      "tab\tü €\u00a0",
		"a\n\u00a0\u3000\ufeff::error::x":     "a\n\u00a0\u3000\ufeff: :error::x",
		"\x00\x7f::x":                         "\ufffd\ufffd: :x",
		":::":                                 ": ::",
		"a::b ::c":                            "a::b ::c",
		": : x":                               ": : x",
		"##[error]x":                          "## [error]x",
		"a ##[group]x":                        "a ## [group]x",
		"###[x ##vso[task.setvariable]y":      "### [x ##vso[task.setvariable]y",
		"# [x] #[y] ## [z]":                   "# [x] #[y] ## [z]",
		"\nv1.36.3: ::1 is not an address":    "\nv1.36.3: ::1 is not an address",
	} {
		t.Run(text, func(t *testing.T) {
			if got := redact.Escaped(text); got != want {
				t.Errorf("Escaped(%q) = %q; want %q", text, got, want)
			}
		})
	}
}

// A command that is written byte by byte is found too, and Write returns the length of
// what it was given.
func TestWriterInParts(t *testing.T) {
	const text = "a\n ::error::b ##[c\u202e::d€"
	var out strings.Builder
	w := redact.NewWriter(&out)
	for i := range len(text) {
		if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatalf("Write = %d, %v; want 1", n, err)
		}
	}
	if want := "a\n : :error::b ## [c\ufffd::d€"; out.String() != want {
		t.Errorf("got %q; want %q", out.String(), want)
	}
	full := errors.New("disk full")
	if n, err := redact.NewWriter(failing{full}).Write([]byte("::x")); n != 0 || !errors.Is(err, full) {
		t.Errorf("Write = %d, %v; want 0 and %v", n, err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

var _ io.Writer = failing{}

// Only the codes of Colored are passed on, and only by a Writer for them, also above another Writer.
func TestColors(t *testing.T) {
	text := redact.Colored(redact.Red, "fail") + "\x1b[1m\x1b]0;t\a\x1b[31;5m"
	var out strings.Builder
	for _, w := range []*redact.Writer{redact.NewColorWriter(redact.NewWriter(&out)), redact.NewWriter(redact.NewColorWriter(&out))} {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	const others = "\ufffd[1m\ufffd]0;t\ufffd\ufffd[31;5m"
	if want := "\x1b[31mfail\x1b[0m" + others + "\ufffd[31mfail\ufffd[0m" + others; out.String() != want {
		t.Errorf("got %q; want %q", out.String(), want)
	}
}

// JSON keeps the values, and a Writer does not change it.
func TestJSON(t *testing.T) {
	value := "\x1b[31m \u009b \u202e \u2028 \x7f ##[x ###[ €\U0001f600"
	document, err := json.Marshal([]string{value})
	if err != nil {
		t.Fatal(err)
	}
	document = redact.EscapedJSON(document)
	var got []string
	if err := json.Unmarshal(document, &got); err != nil || len(got) != 1 || got[0] != value {
		t.Errorf("got %q, %v; want %q", got, err, value)
	}
	if text := redact.Escaped(string(document)); text != string(document) {
		t.Errorf("a Writer changes %s to %s", document, text)
	}
}
