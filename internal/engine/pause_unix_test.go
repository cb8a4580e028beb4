//go:build unix

package engine

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

// stopping is a Provider whose start, and the first request to whose server, stop this process and fail.
type stopping struct {
	unsteady
	stop   func() error
	starts int
}

func (s *stopping) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if s.starts++; s.starts == 1 {
		if err := s.stop(); err != nil {
			return nil, err
		}
		return nil, context.DeadlineExceeded
	}
	return s.unsteady.Start(ctx, options)
}

// What a step observed while this process was paused says nothing, also if the step holds. A start that failed is done again.
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
			s := &stopping{stop: stop}
			s.bad, s.times = func() (framework.Result, error) { return answer, stop() }, 1
			out, err := Run(t.Context(), Options{Provider: s, Scenarios: []scenario.Scenario{read("a.one")}})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Outcomes[0]; got.Verdict != framework.Inconclusive || got.Reason != paused || got.Repeated != 0 || s.starts != 2 {
				t.Errorf("got %s (%s) after %d repetitions and %d starts; want inconclusive after 0 and 2", got.Verdict, got.Reason, got.Repeated, s.starts)
			}
		})
	}
}
