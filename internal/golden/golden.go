// Package golden compares texts with files in tests.
//
//	golden.Compare(t, "testdata/help.golden", got)
//
// go test -update writes the files again; review the difference.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden and generated files again") //nolint:gochecknoglobals // a flag

// Update reports whether files are to be written again.
func Update() bool { return *update }

// Compare fails the test where a text is not what the file has, or with -update
// writes the file.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a folder of the repository
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // a name of ours
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it again):\n%s", file, diff)
	}
}
