// Package golden compares texts with files in tests.
//
//	golden.Compare(t, "testdata/help.golden", got)
//
// go test -update rewrites the files. Review the difference.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden and generated files") //nolint:gochecknoglobals // a flag

var compared sync.Map //nolint:gochecknoglobals // the files of Compare, for Whole

// Whole fails the test for files that match a pattern of filepath.Glob and were not given to Compare by this
// process: what they were made of is gone. It also fails if there is no file. If only some subtests run, it does nothing.
func Whole(t *testing.T, pattern string) {
	t.Helper()
	if run := flag.Lookup("test.run"); run != nil && strings.Contains(run.Value.String(), "/") {
		return
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Errorf("files %s: got %q, %v; want some", pattern, files, err)
	}
	for _, file := range files {
		if _, ok := compared.Load(filepath.Clean(file)); !ok {
			t.Errorf("%s: no test compares it; remove it", file)
		}
	}
}

// Update reports whether -update is given.
func Update() bool { return *update }

// Compare fails the test if got differs from the content of the file. With -update, it writes the
// file instead.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	compared.Store(filepath.Clean(file), true)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a folder of the repository
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // a name in a test
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}
