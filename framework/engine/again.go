package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"k8s.io/apimachinery/pkg/util/wait"
)

// How often a scenario that must be alone is repeated because another run was at
// work, and how long each time the end of that run is waited for.
const (
	againLimit = 3
	crowdLimit = 2 * time.Minute
	crowdPause = 250 * time.Millisecond
)

// crowded is a Target on which others can run scenarios too.
type crowded interface {
	// Others returns the IDs of other runs that have anything installed which decides
	// about requests.
	Others(ctx context.Context) ([]string, error)
}

// others asks a target for other runs. Where it cannot say, there are none.
func others(ctx context.Context, target Target) []string {
	shared, ok := target.(crowded)
	if !ok {
		return nil
	}
	found, err := shared.Others(ctx)
	if err != nil {
		return nil
	}
	return found
}

// crowdedOut reports whether an outcome says nothing, since the scenario must be
// alone and another run is at work or was when this one began. It is repeated then.
func (r *groupRun) crowdedOut(ctx context.Context, c *scenarioCase, outcome report.Outcome) bool {
	if !c.scenario.Spec.Alone || outcome.Verdict != framework.Fail && outcome.Verdict != framework.Errored {
		return false
	}
	found := others(ctx, r.target)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(found) == 0 && !r.met {
		return false
	}
	r.again = append(r.again, c.scenario)
	return true
}

// meet notes whether another run is at work.
func (r *groupRun) meet(ctx context.Context, cases []*scenarioCase) {
	met := slices.ContainsFunc(cases, func(c *scenarioCase) bool { return c.scenario.Spec.Alone }) && len(others(ctx, r.target)) > 0
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met = met
}

// takeAgain returns the scenarios to repeat, and forgets them.
func (r *groupRun) takeAgain() []scenario.Scenario {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.again
	r.again = nil
	return taken
}

// repeats reports whether there is anything to repeat.
func (r *groupRun) repeats() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.again) > 0
}

// repeat runs scenarios again that were not alone, once they are.
func (r *groupRun) repeat(ctx context.Context, number int) error {
	for range againLimit {
		left := r.takeAgain()
		if len(left) == 0 {
			return nil
		}
		r.options.Progress.Stage(fmt.Sprintf("waiting for the end of another run, to repeat %d scenarios that must be alone", len(left)))
		if err := r.awaitAlone(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.give(left, err)
			return nil
		}
		var cases []*scenarioCase
		for _, s := range left {
			number++
			c, err := r.newCase(s, r.target, number)
			if err != nil {
				r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
				continue
			}
			cases = append(cases, c)
		}
		r.meet(ctx, cases)
		for _, wave := range wavesOf(cases) {
			if err := r.wave(ctx, wave, false); err != nil {
				return err
			}
		}
	}
	r.give(r.takeAgain(), errors.New("another run was at work each time"))
	return nil
}

// give notes that nothing can be said about scenarios.
func (r *groupRun) give(left []scenario.Scenario, err error) {
	for _, s := range left {
		r.finish(s, report.Outcome{Verdict: framework.Inconclusive, Reason: "must be alone: " + err.Error()})
	}
}

// awaitAlone waits until no other run has anything installed.
func (r *groupRun) awaitAlone(ctx context.Context) error {
	var found []string
	err := wait.PollUntilContextTimeout(ctx, crowdPause, crowdLimit, true, func(ctx context.Context) (bool, error) {
		found = others(ctx, r.target)
		return len(found) == 0, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: webhook configurations or policies of run %s are on the cluster; if it was killed, `admissiontest cleanup --run %s` removes them",
			framework.ErrNotSettled, strings.Join(found, ", "), found[0])
	}
	return err
}
