package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// How long to wait for the end of another run before an exclusive scenario is repeated.
const (
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
	r.toRepeat = append(r.toRepeat, repeated{c.scenario, otherRunCause})
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
