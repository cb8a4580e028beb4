package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/report"
)

// repeatLimit is how often a scenario is repeated whose outcome says nothing, and a wait that failed because of the
// infrastructure.
const repeatLimit = 3

// repeated is a scenario or case to repeat, and why.
type repeated struct {
	scenario scenario.Scenario
	cause    string
	// dropped is the outcome if the API server closed the connection instead of answering each time, otherwise nil.
	dropped *report.Outcome
}

// drops is how often the API server closed the connection at a step of a scenario instead of answering.
type drops struct{ times, step int }

// repeatLater notes that the outcome of a scenario says nothing about admission.
func (r *groupRun) repeatLater(s scenario.Scenario, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.toRepeat = append(r.toRepeat, repeated{scenario: s, cause: cause})
}

// repeatFailed notes that a step failed for a cause that says nothing about admission. If the API server closes
// the connection at that step each time, and answers other requests, that is the outcome: it panics, for instance.
func (r *groupRun) repeatFailed(c *execution.Case, failure *execution.Failure, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, name := repeated{scenario: c.Scenario, cause: cause}, c.Scenario.Metadata.Name
	before, outcome := r.drops[name], c.Outcome(failure)
	same := before.times == 0 || before.step == outcome.Evidence.Step
	if expect.Dropped(failure.Err) && same && before.times == r.repeats[name] {
		r.drops[name] = drops{times: before.times + 1, step: outcome.Evidence.Step}
		outcome.Verdict, outcome.Cause = framework.Fail, "the API server closes the connection without a response"
		outcome.Reason = fmt.Sprintf("%s: %d times, and it answered other requests meanwhile: %s", outcome.Cause, before.times+1, outcome.Reason)
		one.dropped = &outcome
	}
	r.toRepeat = append(r.toRepeat, one)
}

// takeRepeats returns the scenarios to repeat and clears the list.
func (r *groupRun) takeRepeats() []repeated {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.toRepeat
	r.toRepeat = nil
	for _, one := range taken {
		r.repeats[one.scenario.Metadata.Name]++
	}
	return taken
}

// hasRepeats reports whether there are scenarios to repeat.
func (r *groupRun) hasRepeats() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.toRepeat) > 0
}

// repeat runs the scenarios again whose outcome says nothing about admission. Each gets another ID and a
// new namespace.
func (r *groupRun) repeat(ctx context.Context, isolate bool) error {
	for range repeatLimit {
		left := r.takeRepeats()
		if len(left) == 0 {
			return nil
		}
		r.options.Progress.Stage(fmt.Sprintf("repeating %d scenarios: %s", len(left), left[0].cause))
		again := scenario.Keep(r.group.scenarios, func(s scenario.Scenario) bool {
			return slices.ContainsFunc(left, func(one repeated) bool { return one.scenario.Metadata.Name == s.Metadata.Name })
		})
		var setups []*execution.Setup
		for _, s := range again {
			if setup := r.newSetup(s); setup != nil {
				setups = append(setups, setup)
			}
		}
		for _, wave := range wavesOf(setups, isolate) {
			if err := r.wave(ctx, wave, false); err != nil {
				return err
			}
		}
	}
	r.mu.Lock()
	left := r.toRepeat
	r.toRepeat = nil
	r.mu.Unlock()
	for _, one := range left {
		if one.dropped != nil {
			r.finish(one.scenario, *one.dropped)
			continue
		}
		r.finish(one.scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: fmt.Sprintf("%s: after %d repetitions", one.cause, repeatLimit)})
	}
	return nil
}
