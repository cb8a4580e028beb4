package scenario

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// everyFile calls do with each scenario file in testdata.
func everyFile(t testing.TB, do func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			return err
		}
		content, err := os.ReadFile(name) //nolint:gosec // a file of this repository
		if err != nil {
			return err
		}
		do(name, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzLoad loads any content twice. Both results are the same: scenarios, or errors
// with positions in the file.
func FuzzLoad(f *testing.F) {
	everyFile(f, func(name string, content []byte) {
		if len(content) < 1<<14 {
			f.Add(content, strings.HasSuffix(name, ".json"))
		}
	})
	f.Fuzz(func(t *testing.T, content []byte, isJSON bool) {
		name := "a/a.yaml"
		if isJSON {
			name = "a/a.json"
		}
		fsys := fstest.MapFS{name: {Data: content}}
		scenarios, err := Load(LoadOptions{FS: fsys})
		if err == nil && len(scenarios) == 0 && !strings.Contains(string(content), kindUncovered) {
			t.Error("neither a scenario nor an error")
		}
		lines := strings.Count(string(content), "\n") + 1
		for _, one := range Errors(err) {
			if one.File != name || one.Line < 1 || one.Line > lines || one.Column < 1 || one.Message == "" {
				t.Errorf("error without a position: %+v", one)
			}
			if strings.Contains(one.Message, "parser failed") {
				t.Logf("%s", one)
			}
		}
		_, again := Load(LoadOptions{FS: fsys})
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Errorf("first\n%v\nthen\n%v", err, again)
		}
	})
}
