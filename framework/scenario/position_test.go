package scenario

import (
	"strings"
	"testing"
)

// origin has everything at one position. It is a file that the scenario refers to if it has a name.
type origin struct{ file string }

func (o origin) Position(string, string) (file string, line, column int) { return o.file, 3, 5 }
func (o origin) Locate(_, _ string, line, column int) (file string, fileLine, fileColumn int) {
	return o.file, 3 + line, 5 + column
}
func (o origin) FromFile(string) bool { return o.file != "" }

func TestErrorAt(t *testing.T) {
	for name, one := range map[string]struct {
		origin   Origin
		want     string
		fromFile bool
	}{
		"no file":          {nil, "b.yaml: m", false},
		"the scenario's":   {origin{}, "b.yaml:3:5: m", false},
		"one it refers to": {origin{"c.yaml"}, "c.yaml:3:5: m", true},
	} {
		subject := Scenario{File: "b.yaml", Origin: one.origin}
		if got := subject.ErrorAt("given[0]", "data", "m", "").Error(); got != one.want {
			t.Errorf("%s: got %s, want %s", name, got, one.want)
		}
		want := strings.Replace(one.want, ":3:5", ":5:6", 1)
		if got := subject.ErrorIn("given[0]", "data", [2]int{2, 1}, "m").Error(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if got := subject.FromFile("given[0]"); got != one.fromFile {
			t.Errorf("%s: FromFile is %t, want %t", name, got, one.fromFile)
		}
	}
}
