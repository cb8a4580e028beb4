//go:build unix

package engine

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// What a step observed while this process was paused says nothing, also if the step holds.
func TestPaused(t *testing.T) {
	stop := func() error {
		resume := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 3; kill -CONT $PPID")
		if err := resume.Start(); err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return err
		}
		return resume.Wait()
	}
	for name, answer := range map[string]framework.Result{
		"refused": response(500, "failed calling webhook: context deadline exceeded"),
		"allowed": response(200, ""),
	} {
		t.Run(name, func(t *testing.T) {
			u := &unsteady{bad: func() (framework.Result, error) { return answer, stop() }, times: 1}
			out, err := Run(t.Context(), Options{Provider: u, Scenarios: []scenario.Scenario{read("a.one")}})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Outcomes[0]; got.Verdict != framework.Inconclusive || got.Reason != paused || got.Repeated != 0 {
				t.Errorf("got %s (%s) after %d repetitions; want inconclusive after 0", got.Verdict, got.Reason, got.Repeated)
			}
		})
	}
}
