package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// interrupting is a writer that calls cancel when a string is written, which may be in parts.
type interrupting struct {
	safe
	at     string
	cancel func()
}

func (w *interrupting) Write(p []byte) (int, error) {
	if strings.Contains(w.safe.String()+string(p), w.at) {
		w.cancel()
	}
	return w.safe.Write(p)
}

// An interrupt while the result of a run is printed does not change this result. An interrupt during
// the first run leaves no result.
func TestWatchInterrupted(t *testing.T) {
	dir := write(t, map[string]string{"passes.yaml": scenarioFile("mine.passes", "MUST", "x"), "fails.yaml": scenarioFile("mine.fails", "MUST", "refused"), "interrupts.yaml": scenarioFile("mine.interrupts", "MUST", "interrupt")})
	for name, want := range map[string]int{"passes": exitPass, "fails": exitFail, "interrupts": exitInterrupted} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stdout, stderr := interrupting{at: "1 scenario: ", cancel: cancel}, safe{}
			a := &app{Process: Process{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}, catalogue: fixture(), provider: &fake{cancel: cancel}}
			if code := a.main(ctx, []string{"run", "--watch", filepath.Join(dir, name+".yaml")}); code != want {
				t.Errorf("exit code %d, want %d:\n%s\n%s", code, want, stdout.String(), stderr.String())
			}
		})
	}
}

// The line before a run names the files that changed. One that was deleted is not named: it can have
// existed for a moment only.
func TestWatchNamesChangedFiles(t *testing.T) {
	dir := write(t, map[string]string{"kept.yaml": ""})
	kept, deleted := filepath.Join(dir, "kept.yaml"), filepath.Join(dir, "deleted.yaml")
	for want, pending := range map[string]map[string]bool{
		"running 1 of 1 scenarios; changed: " + kept + "\n": {kept: true, deleted: true},
		"running 1 of 1 scenarios\n":                        {deleted: true},
	} {
		t.Run(fmt.Sprintf("%d pending", len(pending)), func(t *testing.T) {
			var printed bytes.Buffer
			w := &watchLoop{app: &app{Process: Process{Stderr: &printed}}, flags: &runFlags{}, pending: pending, due: map[string]bool{}}
			w.flags.install = []string{dir}
			w.choose([]scenario.Scenario{{}})
			if printed.String() != want {
				t.Errorf("printed %q, want %q", printed.String(), want)
			}
		})
	}
}
