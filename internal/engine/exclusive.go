package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// How long to wait for another run before an exclusive scenario is repeated. The limit does not begin as long as the other run
// is alive.
const (
	otherRunsLimit = 2 * time.Minute
	otherRunsPause = 250 * time.Millisecond
)

// Why the outcome of an exclusive scenario says nothing.
const (
	otherRunCause    = "another run was active"
	unknownRunsCause = "it is not known whether another run was active"
)

// otherRuns asks the target for other runs. There are none if it has the API server for itself.
func otherRuns(ctx context.Context, target target.Target) (alive, installed []string, err error) {
	if ask := target.Optional().OtherRuns; ask != nil {
		return ask(ctx)
	}
	return nil, nil, nil
}

// disturbance returns why an exclusive scenario can be disturbed now, or "". A run that has nothing
// installed now may have removed something a moment ago, and the API server can still act on that.
func disturbance(ctx context.Context, target target.Target) string {
	alive, installed, err := otherRuns(ctx, target)
	switch {
	case err != nil:
		return unknownRunsCause
	case len(alive)+len(installed) > 0:
		return otherRunCause
	}
	return ""
}

// disturbed reports whether an outcome says nothing, because the scenario is exclusive
// and another run is active or was active when this wave began. The scenario is repeated
// then.
func (r *groupRun) disturbed(ctx context.Context, c *execution.Case, outcome report.Outcome) bool {
	if !c.Scenario.Spec.Exclusive || outcome.Verdict == framework.Pass || outcome.Verdict == framework.Unsupported {
		return false
	}
	now := disturbance(ctx, r.target)
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := cmp.Or(r.disturbance, now)
	if cause == "" {
		return false
	}
	r.toRepeat = append(r.toRepeat, repeated{scenario: c.Scenario, cause: cause, exclusive: true})
	return true
}

// noteOtherRuns notes whether another run is active, if one of the scenarios is exclusive.
func (r *groupRun) noteOtherRuns(ctx context.Context, setups []*execution.Setup) {
	cause := ""
	if slices.ContainsFunc(setups, func(s *execution.Setup) bool { return s.Scenario.Spec.Exclusive }) {
		cause = disturbance(ctx, r.target)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disturbance = cause
}

// waitForOtherRuns waits until no other run has anything installed. It does not wait for their end:
// two runs would wait for one another.
func (r *groupRun) waitForOtherRuns(ctx context.Context) error {
	var alive, found []string
	var unknown error
	seen := time.Now()
	err := wait.PollUntilContextCancel(ctx, otherRunsPause, true, func(ctx context.Context) (bool, error) {
		limited, cancel := context.WithTimeout(ctx, otherRunsLimit)
		defer cancel()
		alive, found, unknown = otherRuns(limited, r.target)
		switch {
		case unknown == nil && len(found) == 0:
			return true, nil
		case slices.ContainsFunc(found, func(run string) bool { return slices.Contains(alive, run) }):
			seen = time.Now()
		case time.Since(seen) > otherRunsLimit:
			return false, framework.ErrTimeout
		}
		return false, nil
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case unknown != nil:
		return fmt.Errorf("%w after %s: find other runs: %w", framework.ErrTimeout, otherRunsLimit, unknown)
	}
	return fmt.Errorf("%w after %s: webhook configurations or policies of run %s are on the cluster; if it was killed, `admissiontest cleanup --run %s` removes them",
		framework.ErrTimeout, otherRunsLimit, strings.Join(found, ", "), found[0])
}
