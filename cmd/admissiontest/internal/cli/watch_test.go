package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
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
