package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
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
	r.answers.miss()
	_ = wait.PollUntilContextCancel(ctx, restartPause, true, func(ctx context.Context) (bool, error) {
		return r.target.Alive(ctx) == nil, nil
	})
	return context.Cause(ctx)
}

// whileRuns calls a function whose context ends with the API server: when its program ends, or when it does not
// answer any more. The error is then a target.ErrGone.
func (r *groupRun) whileRuns(ctx context.Context, do func(context.Context) error) error {
	return target.WhileRuns(ctx, r.target.Optional().Server, func(ctx context.Context) error {
		return target.WhileAnswers(ctx, func(ctx context.Context) error {
			defer r.answers.ask()()
			return r.target.Alive(ctx)
		}, do)
	})
}

// late is the time after which an answer of the API server is late. A webhook call can time out meanwhile,
// because the API server was paused.
const late = 3 * time.Second

// serverPaused is why an outcome that is not as expected says nothing after a late answer.
const serverPaused = "the API server answered no request for some seconds"

// answers notices late and missing answers of an API server.
type answers struct {
	mu sync.Mutex
	// asked has when each question was asked that was not answered yet, late is when a late answer arrived.
	asked []time.Time
	late  time.Time
	// missing is when a request last got no answer.
	missing time.Time
}

// ask notes a question. The returned function notes its answer.
func (a *answers) ask() (answered func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	a.asked = append(a.asked, began)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if time.Since(began) > late {
			a.late = time.Now()
		}
		i := slices.Index(a.asked, began)
		a.asked = slices.Delete(a.asked, i, i+1)
	}
}

// lateSince reports whether an answer was late after a time, or is late now.
func (a *answers) lateSince(began time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.late.After(began) || slices.ContainsFunc(a.asked, func(asked time.Time) bool { return time.Since(asked) > late })
}

// miss notes that a request got no answer.
func (a *answers) miss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing = time.Now()
}

// missingSince reports whether a request got no answer after a time. One of several API servers may have
// ended then, and with it controllers, of which another instance begins to work later.
func (a *answers) missingSince(began time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing.After(began)
}

// paused is why what happened during a pause of this process says nothing.
const paused = "this process was paused, and the API server did not wait for its Hooks"

// nothing returns why an error of something that began at a time says nothing, or "": the infrastructure
// failed, or this process was paused.
func (r *run) nothing(err error, began time.Time) string {
	if err != nil && r.pauses.Since(began) {
		return paused
	}
	return expect.InfrastructureError(err)
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
