package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// TestBadFiles compares the errors for each file in testdata/bad with a golden file. A
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
			scenarios, err := Load(LoadOptions{}, name)
			if err == nil {
				t.Fatalf("loaded %d scenarios of a bad file without an error", len(scenarios))
			}
			if scenarios != nil {
				t.Errorf("got %d scenarios with an error, want none", len(scenarios))
			}
			golden.Compare(t, strings.TrimSuffix(name, filepath.Ext(name))+".golden", filepath.ToSlash(err.Error())+"\n")
		})
	}
	golden.Whole(t, "*.golden")
	if cases < 50 {
		t.Errorf("found %d bad files, want at least 50", cases)
	}
}
