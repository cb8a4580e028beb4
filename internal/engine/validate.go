package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Why an outcome says nothing about admission: see saysNothing.
const (
	paused       = "this process was paused, and the API server did not wait for its Hooks"
	serverPaused = "the API server answered a request late, or not at all"
	lostCause    = "other clients made so many connections to this process or to the API server that one between them can have been lost"
)

// moment is when something began, and how many connections of the API server can have been lost before.
type moment struct {
	time time.Time
	lost int
}

func (r *groupRun) now() moment { return moment{time.Now(), strangers(r.target).Lost} }

// strangers returns what clients other than the API server did to a target until now.
func strangers(of target.Target) hook.Strangers {
	if count := of.Optional().Strangers; count != nil {
		return count()
	}
	return hook.Strangers{}
}

// saysNothing returns why an outcome says nothing about admission, or "": something did not hold that is assumed of this
// process, the API server and the connections between them since its scenario began. Cause is what the scenario itself
// saw of that, or "". With one call less, a scenario can pass too.
func (r *groupRun) saysNothing(outcome report.Outcome, cause string, since moment) string {
	switch {
	case r.pauses.Since(since.time):
		return paused
	case cause != "":
		return cause
	case outcome.Verdict == framework.Unsupported || outcome.Mistake:
		return ""
	case outcome.Verdict != framework.Pass && r.answers.missedSince(since.time):
		return serverPaused
	case strangers(r.target).Lost != since.lost:
		return lostCause
	default:
		return ""
	}
}

// late is the time after which an answer of the API server is late. A webhook call can time out meanwhile,
// because the API server was paused.
const late = 3 * time.Second

// answers notices late and missing answers of an API server.
type answers struct {
	mu sync.Mutex
	// asked is when a question began that has no answer, missed is when an answer was last late or missing.
	asked, missed time.Time
}

// ask notes a question whether the API server is alive, which is asked every few seconds. The returned function notes its
// answer.
func (a *answers) ask() (answered func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	if a.asked.IsZero() {
		a.asked = began
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if time.Since(began) > late || !a.asked.IsZero() && time.Since(a.asked) > late {
			a.missed = time.Now()
		}
		a.asked = time.Time{}
	}
}

// miss notes that a request got no answer. One of several API servers may have ended, and with it controllers, of which
// another instance begins to work later.
func (a *answers) miss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed = time.Now()
}

func (a *answers) missedSince(began time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missed.After(began) || !a.asked.IsZero() && time.Since(a.asked) > late
}

// restartPause is the time between two questions whether an API server responds again.
const restartPause = 250 * time.Millisecond

// lost waits, after a response was lost, until the API server responds. It returns why ctx ended before that:
// a target.ErrGone if the API server is gone.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if !errors.Is(err, framework.ErrNoResponse) {
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

// again notes that the outcome of a case says nothing for a cause: it is repeated once, after the others, and then it is
// inconclusive. What a pause of this process did is inconclusive at once. If the API server closes the connection both
// times, and answers other requests, that is the outcome: it panics, for instance. Failure is that of a step, or nil.
func (r *groupRun) again(c *execution.Case, cause string, failure *execution.Failure) {
	name, outcome := c.Scenario.Metadata.Name, report.Outcome{}
	r.mu.Lock()
	dropped, before := failure != nil && expect.Dropped(failure.Err), r.drops[name]
	r.drops[name] = dropped
	first := cause != paused && r.repeats[name] == 0
	if first {
		r.toRepeat[name] = cause
	}
	r.mu.Unlock()
	if first {
		return
	}
	if failure != nil {
		outcome = c.Outcome(failure)
	}
	said := outcome.Reason
	outcome.Verdict, outcome.Reason = framework.Inconclusive, cause
	switch {
	case cause == paused:
	case dropped && before:
		outcome.Verdict, outcome.Cause = framework.Fail, "the API server closes the connection without a response"
		outcome.Reason = fmt.Sprintf("%s: twice, and it answered other requests meanwhile: %s", outcome.Cause, said)
	default:
		outcome.Reason += ": after a repetition"
	}
	r.finish(c.Scenario, outcome)
}

// repeat runs the scenarios once more whose outcome says nothing about admission. Each gets another ID and a
// new namespace.
func (r *groupRun) repeat(ctx context.Context, isolate bool) error {
	var setups []*execution.Setup
	first := ""
	r.mu.Lock()
	left := r.toRepeat
	r.toRepeat = map[string]string{}
	for name, cause := range left {
		r.repeats[name]++
		first = cause
	}
	r.mu.Unlock()
	if len(left) > 0 {
		r.options.Progress.Stage(fmt.Sprintf("repeating %d scenarios: %s", len(left), first))
	}
	for _, s := range scenario.Keep(r.group.scenarios, func(s scenario.Scenario) bool { return left[s.Metadata.Name] != "" }) {
		if setup := r.newSetup(s); setup != nil {
			setups = append(setups, setup)
		}
	}
	for _, wave := range wavesOf(setups, isolate) {
		if err := r.wave(ctx, wave, false); err != nil {
			return err
		}
	}
	return nil
}
