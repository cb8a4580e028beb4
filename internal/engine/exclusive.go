package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The limits of repeating an exclusive scenario because another run was active: how
// often, and how long to wait for the end of that run each time.
const (
	repeatLimit    = 3
	otherRunsLimit = 2 * time.Minute
	otherRunsPause = 250 * time.Millisecond
)

// otherRuns returns the IDs of other runs on the API server. There are none if the
// target has the API server for itself, or if the question fails.
func otherRuns(ctx context.Context, target Target) []string {
	ask := target.Optional().OtherRuns
	if ask == nil {
		return nil
	}
	found, err := ask(ctx)
	if err != nil {
		return nil
	}
	return found
}

// disturbed reports whether an outcome says nothing, because the scenario is exclusive
// and another run is active or was active when this wave began. The scenario is repeated
// then.
func (r *groupRun) disturbed(ctx context.Context, c *scenarioCase, outcome report.Outcome) bool {
	if !c.scenario.Spec.Exclusive || outcome.Verdict != framework.Fail && outcome.Verdict != framework.Errored {
		return false
	}
	found := otherRuns(ctx, r.target)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(found) == 0 && !r.sawOtherRuns {
		return false
	}
	r.toRepeat = append(r.toRepeat, c.scenario)
	return true
}

// noteOtherRuns notes whether another run is active, if one of the cases is exclusive.
func (r *groupRun) noteOtherRuns(ctx context.Context, cases []*scenarioCase) {
	exclusive := slices.ContainsFunc(cases, func(c *scenarioCase) bool { return c.scenario.Spec.Exclusive })
	saw := exclusive && len(otherRuns(ctx, r.target)) > 0
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sawOtherRuns = saw
}

// takeRepeats returns the scenarios to repeat and clears the list.
func (r *groupRun) takeRepeats() []scenario.Scenario {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.toRepeat
	r.toRepeat = nil
	return taken
}

// hasRepeats reports whether there are scenarios to repeat.
func (r *groupRun) hasRepeats() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.toRepeat) > 0
}

// repeat runs disturbed scenarios again once no other run is active. Number is the
// number of the last scenario.
func (r *groupRun) repeat(ctx context.Context, number int) error {
	for range repeatLimit {
		left := r.takeRepeats()
		if len(left) == 0 {
			return nil
		}
		r.options.Progress.Stage(fmt.Sprintf("waiting for the end of another run, to repeat %d exclusive scenarios", len(left)))
		if err := r.waitForOtherRuns(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.inconclusive(left, err)
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
		r.noteOtherRuns(ctx, cases)
		for _, wave := range wavesOf(cases) {
			if err := r.wave(ctx, wave, false); err != nil {
				return err
			}
		}
	}
	r.inconclusive(r.takeRepeats(), errors.New("another run was active each time"))
	return nil
}

// inconclusive ends exclusive scenarios that could not run by themselves.
func (r *groupRun) inconclusive(left []scenario.Scenario, err error) {
	for _, s := range left {
		r.finish(s, report.Outcome{Verdict: framework.Inconclusive, Reason: "exclusive scenario: " + err.Error()})
	}
}

// waitForOtherRuns waits until no other run has anything installed.
func (r *groupRun) waitForOtherRuns(ctx context.Context) error {
	var found []string
	err := wait.PollUntilContextTimeout(ctx, otherRunsPause, otherRunsLimit, true, func(ctx context.Context) (bool, error) {
		found = otherRuns(ctx, r.target)
		return len(found) == 0, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w after %s: webhook configurations or policies of run %s are on the cluster; if it was killed, `admissiontest cleanup --run %s` removes them",
			framework.ErrTimeout, otherRunsLimit, strings.Join(found, ", "), found[0])
	}
	return err
}
