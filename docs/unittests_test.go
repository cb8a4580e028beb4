package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/minor"
)

// unitTests is the manual for unit tests.
func unitTests(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("unit-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The manual for unit tests has each interface that is served in its table, and no other one. It says
// which are not served.
func TestUnitTestsNameInterfaces(t *testing.T) {
	var served, got []string
	for _, wants := range minor.Table() {
		served = append(served, wants.Interface)
	}
	text := unitTests(t)
	for line := range strings.Lines(text) {
		if row, found := strings.CutPrefix(line, "| "); found {
			interfaces, _, _ := strings.Cut(row, "|")
			got = append(got, regexp.MustCompile("Wants[A-Za-z]+").FindAllString(interfaces, -1)...)
		}
	}
	slices.Sort(served)
	slices.Sort(got)
	if !slices.Equal(got, served) {
		t.Errorf("the table of unit-tests.md has the interfaces\n%q; want\n%q", got, served)
	}
	for _, wants := range minor.NeverInjected() {
		if !strings.Contains(text, "No API server injects `"+wants.Interface+"`") {
			t.Errorf("unit-tests.md does not say that %s is not served", wants.Interface)
		}
	}
}

// The code of the manual for unit tests is in an example that runs, apart from its indentation.
func TestUnitTestsShowExample(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "framework", "harness", "customresource_example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	example := strings.Join(strings.Fields(string(source)), " ")
	shown := 0
	for _, block := range strings.Split(unitTests(t), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(code, "knownTeam") && !strings.Contains(code, `"teams"`) {
			continue
		}
		shown++
		for line := range strings.Lines(code) {
			if !strings.Contains(example, strings.Join(strings.Fields(line), " ")) {
				t.Errorf("customresource_example_test.go does not have the line %q of unit-tests.md", line)
			}
		}
	}
	if shown != 2 {
		t.Errorf("found %d parts of the example; want 2", shown)
	}
}
