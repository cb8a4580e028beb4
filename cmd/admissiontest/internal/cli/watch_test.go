package cli

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// The line before a run names the files that changed. One that was deleted is not named: it can have
// existed for a moment only.
func TestWatchNamesChangedFiles(t *testing.T) {
	dir := write(t, map[string]string{"kept.yaml": ""})
	kept, deleted := filepath.Join(dir, "kept.yaml"), filepath.Join(dir, "deleted.yaml")
	for want, pending := range map[string]map[string]bool{
		"running 1 of 1 scenarios; changed: " + kept + "\n": {kept: true, deleted: true},
		"running 1 of 1 scenarios\n":                        {deleted: true},
	} {
		var printed bytes.Buffer
		w := &watchLoop{app: &app{Process: Process{Stderr: &printed}}, flags: &runFlags{}, pending: pending, due: map[string]bool{}}
		w.flags.install.Paths = []string{dir}
		w.choose([]scenario.Scenario{{}})
		if printed.String() != want {
			t.Errorf("printed %q, want %q", printed.String(), want)
		}
	}
}
