package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProfile(t *testing.T) {
	p, err := parseProfile(strings.NewReader("mode: set\nk8s.io/a@v0.36.3/b.go:1.2,3.4 5 0\n\nmode: count\nk8s.io/a/b.go:1.2,3.4 5 17\n"))
	want := profile{{File: "k8s.io/a/b.go", Start: position{Line: 1, Column: 2}, End: position{Line: 3, Column: 4}, Statements: 5}: true}
	if diff := cmp.Diff(want, p); err != nil || diff != "" {
		t.Errorf("Parse: %v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"a.go", "a.go:1.2,3.4 5", "a.go:1.2 5 0", "a.go:1.2,3.4 x 0", "a.go:1.2,3.4 5 -1", ":1.2,3.4 5 0", "a.go:1.2,3.4 -5 0"} {
		t.Run(text, func(t *testing.T) {
			if _, err := parseProfile(strings.NewReader("mode: set\n" + text)); err == nil || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("Parse(%q) = %v; want an error in line 2", text, err)
			}
		})
	}
}
