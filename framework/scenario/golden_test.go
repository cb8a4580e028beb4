package scenario

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files and the generated comments")

// TestBadFiles pins what the loader says about each file in testdata/bad. A
// folder there is loaded as a whole.
func TestBadFiles(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "bad"))
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			scenarios, err := LoadPaths(name)
			if err == nil {
				t.Fatalf("loaded %d scenarios of a bad file without an error", len(scenarios))
			}
			if scenarios != nil {
				t.Errorf("got %d scenarios beside an error, want none", len(scenarios))
			}
			golden(t, strings.TrimSuffix(name, filepath.Ext(name))+".golden", filepath.ToSlash(err.Error())+"\n")
		})
	}
	if cases < 50 {
		t.Errorf("found %d bad files, want those that are in the repository", cases)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name) //nolint:gosec // a name of ours
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it\n%s", name, diff)
	}
}
