package expect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	long := func(changed string) string {
		var text strings.Builder
		for i := range 20 {
			line := fmt.Sprint("line ", i)
			if i == 10 {
				line = changed
			}
			text.WriteString(line + "\n")
		}
		return text.String()
	}
	tests := map[string]struct {
		first, second string
		want          []string
	}{
		"equal":                {"a\n", "a\n", nil},
		"one line":             {"a\nb\nc\n", "a\nx\nc\n", []string{" a", "-b", "+x", " c"}},
		"more":                 {"a\n", "a\nb\n", []string{" a", "+b"}},
		"less":                 {"a\nb\n", "b\n", []string{"-a", " b"}},
		"in between":           {"a\nb\nc\nd\n", "b\nx\nd\n", []string{"-a", " b", "-c", "+x", " d"}},
		"nothing in the first": {"", "a\n", []string{"-", "+a"}},
		"long":                 {long("one"), long("two"), []string{"~ 7 equal lines", " line 7", " line 8", " line 9", "-one", "+two", " line 11", " line 12", " line 13", "~ 6 equal lines"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, textDiff(test.first, test.second)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// Texts of any size are compared, and the result is bounded.
func TestLinesIsBounded(t *testing.T) {
	var first, second strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&first, "a", i)
		fmt.Fprintln(&second, "b", i)
	}
	got := textDiff(first.String(), second.String())
	if len(got) > 500 || !strings.HasPrefix(got[len(got)-1], "~ and ") {
		t.Errorf("got %d lines, the last is %q; want a bounded number, and how many more there are", len(got), got[len(got)-1])
	}
}
