package kubeapiserver_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// Each Go file of the folders is a source, except tests, and imports nothing of this module.
func TestSources(t *testing.T) {
	files, err := kubeapiserver.Sources("example.com/module")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "sources.go" || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		to := path.Join("kubeapiserver", name)
		if main, ok := strings.CutPrefix(name, "_main/"); ok {
			to = main
		}
		if files[to] == "" {
			t.Errorf("%s is not embedded: add it to the go:embed line", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range file.Imports {
			if strings.Contains(one.Path.Value, "admissiontest/") {
				t.Errorf("%s imports %s, which a temporary module does not have", name, one.Path.Value)
			}
		}
	}
}
