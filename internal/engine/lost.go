package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/infrastructure"
	"github.com/admissiontest/admissiontest/internal/target"
)

// restartPause is the time between two questions whether an API server responds again.
const restartPause = 250 * time.Millisecond

// lost waits, after a response was lost, until the API server responds. It returns why ctx ended before that:
// a target.ErrGone if the API server is gone.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, framework.ErrNoResponse) {
		return nil
	}
	_ = wait.PollUntilContextCancel(ctx, restartPause, true, func(ctx context.Context) (bool, error) {
		return r.target.Alive(ctx) == nil, nil
	})
	return context.Cause(ctx)
}

// whileRuns calls a function whose context ends with an API server: when its program ends, or when it does not
// answer any more. The error is then a target.ErrGone.
func whileRuns(ctx context.Context, used target.Target, do func(context.Context) error) error {
	return target.WhileRuns(ctx, used.Optional().Server, func(ctx context.Context) error {
		return target.WhileAnswers(ctx, used.Alive, do)
	})
}

// paused is why what happened during a pause of this process says nothing.
const paused = "this process was paused, and the API server did not wait for its Hooks"

// nothing returns why an error of something that began at a time says nothing, or "": the infrastructure
// failed, or this process was paused.
func (r *run) nothing(err error, began time.Time) string {
	if err != nil && r.pauses.Since(began) {
		return paused
	}
	return infrastructure.OfError(err)
}

// unpaused calls a function again if it fails and this process was paused during the call.
func (r *run) unpaused(do func() error) error {
	for {
		began := time.Now()
		if err := do(); err == nil || !r.pauses.Since(began) {
			return err
		}
	}
}
