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

// Each code block of the manual for unit tests is in a test that is compiled and runs, apart from its indentation.
func TestUnitTestsShowTests(t *testing.T) {
	var sources []string
	for _, path := range []string{"framework/harness/customresource_example_test.go", "examples/plugin/plugin_test.go", "examples/plugin/contract_test.go"} {
		source, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, strings.Join(strings.Fields(string(source)), " "))
	}
	blocks := strings.Split(unitTests(t), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("unit-tests.md has no code")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		lacks := func(source string) bool {
			return slices.ContainsFunc(strings.Split(code, "\n"), func(line string) bool {
				return !strings.Contains(source, strings.Join(strings.Fields(line), " "))
			})
		}
		if !slices.ContainsFunc(sources, func(source string) bool { return !lacks(source) }) {
			t.Errorf("no test has all lines of this code of unit-tests.md:\n%s", code)
		}
	}
}
