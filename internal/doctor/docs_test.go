package doctor

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs compares the rules in docs/doctor.md with the rules.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range All() {
		want = append(want, fmt.Sprintf("### %s %s (%s)", r.ID, r.Name, r.Level))
		if end := fmt.Sprintf("\nFix: %s.\n\nSee %s\n", r.Fix, strings.Join(r.Source, ", ")); !strings.Contains(string(page), end) {
			t.Errorf("%s: docs/doctor.md lacks %q", r.ID, end)
		}
	}
	if got := regexp.MustCompile(`(?m)^### CF-.*$`).FindAllString(string(page), -1); !slices.Equal(got, want) {
		t.Errorf("docs/doctor.md has the rules %q, want %q", got, want)
	}
}
