package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/report"
)

// waves runs the scenarios of one server.
func (r *groupRun) waves(ctx context.Context, g group) error {
	var cases []*scenarioCase
	for i, s := range g.scenarios {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			continue
		}
		if reason := eligible(s, r.target.Info()); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		c, err := r.newCase(s, r.target, i+1)
		if err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			continue
		}
		cases = append(cases, c)
	}
	r.meet(ctx, cases)
	waves := wavesOf(cases)
	for i, wave := range waves {
		if err := r.wave(ctx, wave, i == len(waves)-1); err != nil {
			return err
		}
	}
	return r.repeat(ctx, len(g.scenarios))
}

// wave arranges scenarios, waits on the fence, lets them act, and disarms them.
// It does so in two squads, so that while the API server takes its time to
// reread policies the scenarios without any act.
func (r *groupRun) wave(ctx context.Context, wave []*scenarioCase, last bool) error {
	actCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	w := &waveRun{groupRun: r, abort: abort, places: make(chan struct{}, r.options.Parallel)}
	var squads sync.WaitGroup
	var ready []*scenarioCase
	for _, squad := range squadsOf(wave) {
		arranged, err := r.arrange(actCtx, squad)
		if err != nil {
			abort(err)
			break
		}
		ready = append(ready, arranged...)
		squads.Go(func() { w.proceed(actCtx, arranged) })
	}
	squads.Wait()
	if cause := context.Cause(actCtx); cause != nil {
		return cause
	}
	if last && !r.repeats() {
		return nil // Close removes the rest
	}
	return r.disarm(ctx, ready)
}

// squadsOf divides a wave into the scenarios that install policies and, before
// them, the rest: a policy that matches every resource is evaluated for each
// configuration that is written after it.
func squadsOf(wave []*scenarioCase) [][]*scenarioCase {
	var policies, rest []*scenarioCase
	for _, c := range wave {
		if slices.ContainsFunc(c.given, isPolicy) {
			policies = append(policies, c)
		} else {
			rest = append(rest, c)
		}
	}
	return slices.DeleteFunc([][]*scenarioCase{rest, policies}, func(squad []*scenarioCase) bool { return len(squad) == 0 })
}

// isPolicy reports whether a manifest is a policy or the binding of one.
func isPolicy(manifest map[string]any) bool {
	kind, _ := manifest["kind"].(string)
	return isAdmission(manifest) && strings.Contains(kind, "Policy")
}

// waveRun is a wave whose squads are on their way.
type waveRun struct {
	*groupRun
	abort context.CancelCauseFunc
	// places bounds how many scenarios act at the same time.
	places chan struct{}
}

// proceed waits on the fence of a squad and lets it act.
func (w *waveRun) proceed(ctx context.Context, squad []*scenarioCase) {
	w.options.Progress.Stage(fmt.Sprintf("waiting until the API server acts on what %d scenarios installed", len(squad)))
	if err := w.settle(ctx, squad); err != nil {
		w.abort(err)
		return
	}
	w.options.Progress.Stage(fmt.Sprintf("running %d scenarios", len(squad)))
	act := func(c *scenarioCase) error {
		if ctx.Err() == nil {
			w.act(ctx, w.abort, c)
		}
		return nil
	}
	waiting, busy := apart(squad)
	var pools sync.WaitGroup
	pools.Go(func() { _ = parallel(waiting, w.options.Parallel, act) })
	_ = parallel(definersLast(busy), w.options.Parallel, func(c *scenarioCase) error {
		w.places <- struct{}{}
		defer func() { <-w.places }()
		return act(c)
	})
	pools.Wait()
}

// given returns what is given to the cases.
func given(cases []*scenarioCase) []map[string]any {
	var all []map[string]any
	for _, c := range cases {
		all = append(all, c.given...)
	}
	return all
}

// apart divides cases into those that mostly wait, for a webhook that hangs, and
// the others. The former take no time of anybody's, so they have places of their
// own.
func apart(cases []*scenarioCase) (waiting, busy []*scenarioCase) {
	for _, c := range cases {
		if c.waits() {
			waiting = append(waiting, c)
		} else {
			busy = append(busy, c)
		}
	}
	return waiting, busy
}

// waits reports whether a webhook of the scenario takes its time.
func (c *scenarioCase) waits() bool {
	for _, script := range c.scripts {
		for _, reply := range script.Replies {
			if reply.Fault == hook.Hang || reply.Fault == hook.Slow || reply.Fault == hook.TLSHang || reply.Delay > 0 {
				return true
			}
		}
	}
	return false
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
func (r *groupRun) arrange(ctx context.Context, wave []*scenarioCase) ([]*scenarioCase, error) {
	r.options.Progress.Stage(fmt.Sprintf("arranging %d scenarios", len(wave)))
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
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		r.finish(c.scenario, report.Outcome{Verdict: framework.Errored, Reason: "arrange: " + err.Error()})
	}
	return ready, nil
}

// settle waits on the fence. Where it never opens nothing can be observed.
func (r *groupRun) settle(ctx context.Context, ready []*scenarioCase) error {
	err := r.target.Settle(ctx, given(ready))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := r.lost(ctx, err); lost != nil {
		return lost
	}
	verdict := framework.Errored
	if errors.Is(err, framework.ErrNotSettled) {
		verdict = framework.Inconclusive
	}
	for _, c := range ready {
		r.finish(c.scenario, report.Outcome{Verdict: verdict, Reason: err.Error()})
	}
	return err
}

// act carries out the steps of one scenario and notes its outcome.
func (r *groupRun) act(ctx context.Context, abort context.CancelCauseFunc, c *scenarioCase) {
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
		if lost := r.lost(ctx, failure.err); lost != nil {
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
	if r.crowdedOut(ctx, c, outcome) {
		return
	}
	r.finish(c.scenario, outcome)
}

// disarm removes what the wave installed to decide about requests, and waits
// until the API server has forgotten it.
func (r *groupRun) disarm(ctx context.Context, ready []*scenarioCase) error {
	err := parallel(ready, r.options.Parallel, func(c *scenarioCase) error { return r.target.Disarm(ctx, c.id) })
	if err == nil {
		err = r.target.Settle(ctx, given(ready))
	}
	if err != nil {
		return fmt.Errorf("disarm scenarios: %w", err)
	}
	return nil
}

// lost returns an error when the target itself is gone: no answer came,
// and none comes now.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, framework.ErrLost) {
		return nil
	}
	if alive := r.target.Alive(ctx); alive != nil {
		return fmt.Errorf("the API server is gone: %w", alive)
	}
	return nil
}
