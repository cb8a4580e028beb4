package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// folderRow is a row of the table of folders.
var folderRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_/-]+)` \\| ([^|\n]+) \\|$")

// folders returns the folders of the table, without a slash at the end.
func folders(text string) map[string]bool {
	found := map[string]bool{}
	for _, row := range folderRow.FindAllStringSubmatch(text, -1) {
		found[strings.TrimSuffix(row[1], "/")] = true
	}
	return found
}

// packages returns the folders of this module with Go files. Modules below it, and what
// is below an example, count as one.
func packages(t *testing.T, root fs.FS) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "_main"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if parts := strings.Split(folder, "/"); parts[0] == "examples" {
			folder = strings.Join(parts[:2], "/")
		}
		found[folder] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// most is the largest number of places in the table of folders.
const most = 15

// outside returns the packages that are in no folder of a table.
func outside(table, tree map[string]bool) (problems []string) {
	for folder := range tree {
		at := folder
		for !table[at] && at != "." {
			at = filepath.ToSlash(filepath.Dir(at))
		}
		if at == "." {
			problems = append(problems, folder)
		}
	}
	return problems
}

// A newcomer finds each package below one of a few places, and each room of internal/ in the manual.
func TestReadmeNamesPlaces(t *testing.T) {
	text := readme(t)
	tree, table := packages(t, os.DirFS("..")), folders(text)
	if table["reference"] = strings.Contains(text, "`reference/`"); len(table) > most+1 {
		t.Errorf("README.md names %d places, want at most %d", len(table)-1, most)
	}
	for _, folder := range outside(table, tree) {
		t.Errorf("README.md: package %s is below no place", folder)
	}
	for folder := range table {
		if _, err := os.Stat(filepath.Join("..", folder)); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
	manual, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for folder := range tree {
		room, found := strings.CutPrefix(folder, "internal/")
		if name, _, _ := strings.Cut(room, "/"); found && !strings.Contains(string(manual), "`"+name+"`") && !strings.Contains(string(manual), "internal/"+name) {
			t.Errorf("architecture.md does not name internal/%s", name)
		}
	}
	if got := outside(map[string]bool{"a/b": true}, map[string]bool{"a/b/c": true, "a/b": true, "a": true, "d": true}); len(got) != 2 {
		t.Errorf("outside = %q, want a and d", got)
	}
}

func TestReadmeScenarioLoads(t *testing.T) {
	_, after, _ := strings.Cut(readme(t), "```yaml\n")
	text, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("README.md has no scenario")
	}
	got, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"example/example.yaml": {Data: []byte(text)}}})
	if err != nil || len(got) != 1 {
		t.Errorf("got %d scenarios, %v, want one", len(got), err)
	}
}

// The test of a plugin in README.md is the one of examples/plugin.
func TestReadmeUnitTest(t *testing.T) {
	_, after, _ := strings.Cut(readme(t), "```go\nfunc TestOwner")
	code, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("README.md has no unit test")
	}
	source, err := os.ReadFile(filepath.Join("..", "examples", "plugin", "plugin_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), "func TestOwner"+code) {
		t.Errorf("the unit test in README.md is not in examples/plugin/plugin_test.go:\n%s", code)
	}
}

// Each test that SECURITY.md names exists.
func TestSecurityNamesTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("SECURITY.md names %d tests, want one for each promise", len(named))
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, function := range regexp.MustCompile(`(?m)^func (Test[A-Za-z]+)\(`).FindAllSubmatch(content, -1) {
			tests[string(function[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range named {
		if !tests[string(one[1])] {
			t.Errorf("SECURITY.md names %s, which is no test", one[1])
		}
	}
}
