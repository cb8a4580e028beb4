package scenarios_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inFolder reports whether a folder of this module has a test of this name.
func inFolder(t *testing.T, folder, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), "\nfunc "+test+"(t *testing.T) {\n") {
			return true
		}
	}
	return false
}

// A Go test that a reason in uncovered.yaml names exists.
func TestTestsInReasons(t *testing.T) {
	named, found := regexp.MustCompile(`(Test\w+) of (\S+) tests it\.$`), 0
	for id, reason := range uncovered(t) {
		if !strings.Contains(reason, "Test") {
			continue
		}
		match := named.FindStringSubmatch(reason)
		switch {
		case match == nil:
			t.Errorf("uncovered.yaml: %s: %q; want it to end with: TestName of FOLDER tests it.", id, reason)
		case !inFolder(t, match[2], match[1]):
			t.Errorf("uncovered.yaml: %s names %s of %s, which does not exist", id, match[1], match[2])
		default:
			found++
		}
	}
	if found == 0 || inFolder(t, "scenarios", "TestThatIsMissing") || inFolder(t, "missing", "TestTestsInReasons") {
		t.Errorf("found %d tests, and one that does not exist", found)
	}
}
