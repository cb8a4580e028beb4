package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/report"
)

// waves runs the scenarios of one server.
func (r *run) waves(ctx context.Context, target Target, g group) error {
	var cases []*scenarioCase
	for i, s := range g.scenarios {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			continue
		}
		if reason := eligible(s, target.Info()); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		c, err := r.newCase(s, target, i+1)
		if err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			continue
		}
		cases = append(cases, c)
	}
	waves := wavesOf(cases)
	for i, wave := range waves {
		if err := r.wave(ctx, target, wave, i == len(waves)-1); err != nil {
			return err
		}
	}
	return nil
}

// wave arranges scenarios, waits on the fence, lets them act, and disarms them.
func (r *run) wave(ctx context.Context, target Target, wave []*scenarioCase, last bool) error {
	r.options.Progress.Stage(fmt.Sprintf("arranging %d scenarios", len(wave)))
	ready, err := r.arrange(ctx, target, wave)
	if err != nil {
		return err
	}
	var installed []map[string]any
	for _, c := range ready {
		installed = append(installed, c.given...)
	}
	r.options.Progress.Stage("waiting until the API server acts on what was installed")
	if err := r.settle(ctx, target, ready, installed); err != nil {
		return err
	}
	r.options.Progress.Stage(fmt.Sprintf("running %d scenarios", len(ready)))
	actCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	_ = parallel(definersLast(ready), r.options.Parallel, func(c *scenarioCase) error {
		if actCtx.Err() == nil {
			r.act(actCtx, cancel, c)
		}
		return nil
	})
	if cause := context.Cause(actCtx); cause != nil {
		return cause
	}
	if last {
		return nil // Close removes the rest
	}
	return r.disarm(ctx, target, ready, installed)
}

// definersLast returns the cases in their order, but those that are given a
// CustomResourceDefinition after the others: kube-apiserver holds up each creation
// of a custom resource for two seconds while its definition is younger than that
// (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
func definersLast(cases []*scenarioCase) []*scenarioCase {
	var first, last []*scenarioCase
	for _, c := range cases {
		if slices.ContainsFunc(c.given, func(manifest map[string]any) bool { return manifest["kind"] == "CustomResourceDefinition" }) {
			last = append(last, c)
		} else {
			first = append(first, c)
		}
	}
	return append(first, last...)
}

// arrange installs what the scenarios of a wave are given, and returns those
// for which that succeeded.
func (r *run) arrange(ctx context.Context, target Target, wave []*scenarioCase) ([]*scenarioCase, error) {
	failed := make(map[*scenarioCase]error)
	// In reverse: the sooner a definition is there, the sooner it is old enough.
	first := definersLast(wave)
	slices.Reverse(first)
	_ = parallel(first, r.options.Parallel, func(c *scenarioCase) error {
		err := ctx.Err()
		if err == nil {
			err = c.arrange(ctx)
		}
		if err != nil {
			r.mu.Lock()
			failed[c] = err
			r.mu.Unlock()
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var ready []*scenarioCase
	for _, c := range wave {
		err, bad := failed[c]
		if !bad {
			ready = append(ready, c)
			continue
		}
		if lost := lostTarget(ctx, target, err); lost != nil {
			return nil, lost
		}
		r.finish(c.scenario, report.Outcome{Verdict: framework.Errored, Reason: "arrange: " + err.Error()})
	}
	return ready, nil
}

// settle waits on the fence. Where it never opens nothing can be observed.
func (r *run) settle(ctx context.Context, target Target, ready []*scenarioCase, installed []map[string]any) error {
	err := target.Settle(ctx, installed)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := lostTarget(ctx, target, err); lost != nil {
		return lost
	}
	for _, c := range ready {
		r.finish(c.scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: err.Error()})
	}
	return err
}

// act carries out the steps of one scenario and notes its outcome.
func (r *run) act(ctx context.Context, abort context.CancelCauseFunc, c *scenarioCase) {
	began := time.Now()
	outcome := report.Outcome{Verdict: framework.Pass}
	for i, step := range c.scenario.Spec.When {
		failure := c.step(ctx, step)
		if failure == nil {
			continue
		}
		if ctx.Err() != nil {
			return // not reached: the scenario did not fail, the run did
		}
		if lost := lostTarget(ctx, c.target, failure.err); lost != nil {
			abort(lost)
			return
		}
		line := 0
		if i < len(c.scenario.Lines) {
			line = c.scenario.Lines[i]
		}
		outcome = failure.outcome(c, i+1, line)
		break
	}
	outcome.DurationSeconds = time.Since(began).Seconds()
	r.finish(c.scenario, outcome)
}

// disarm removes what the wave installed to decide about requests, and waits
// until the API server has forgotten it.
func (r *run) disarm(ctx context.Context, target Target, ready []*scenarioCase, installed []map[string]any) error {
	err := parallel(ready, r.options.Parallel, func(c *scenarioCase) error { return target.Disarm(ctx, c.id) })
	if err == nil {
		err = target.Settle(ctx, installed)
	}
	if err != nil {
		return fmt.Errorf("disarm scenarios: %w", err)
	}
	return nil
}

// lostTarget returns an error when the target itself is gone: no answer came,
// and none comes now.
func lostTarget(ctx context.Context, target Target, err error) error {
	if err == nil || !errors.Is(err, framework.ErrLost) {
		return nil
	}
	if alive := target.Alive(ctx); alive != nil {
		return fmt.Errorf("the API server is gone: %w", alive)
	}
	return nil
}
