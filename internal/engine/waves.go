package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// waves runs the scenarios of one server.
func (r *groupRun) waves(ctx context.Context, g group) error {
	r.findPlugins(ctx, g)
	var cases []*scenarioCase
	numbers := installations{}
	for i, s := range g.scenarios {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			continue
		}
		if reason := unsupported(s, r.target.Info()); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		if reason := r.plugins.missing(s); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		if s.Spec.Isolation == scenario.IsolationNone && r.target.Optional().Confined != nil {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: openUnsupported})
			continue
		}
		c, err := r.newCase(s, r.target, numbers.of(s, i+1))
		if err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			continue
		}
		if err := c.foreign(); err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: err.Error()})
			continue
		}
		if reason := c.unseen.scripted(s); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		r.noteNotSeen(c.unseen)
		cases = append(cases, c)
	}
	r.noteOtherRuns(ctx, cases)
	waves := wavesOf(cases)
	for i, wave := range waves {
		if err := r.wave(ctx, wave, i == len(waves)-1); err != nil {
			return err
		}
	}
	return r.repeat(ctx, len(g.scenarios))
}

// wavesOf divides the scenarios of one server into waves. Exclusive scenarios come first:
// all in one wave if they install nothing that decides about requests, each other one in
// its own wave. Then as many scenarios at once as give no different objects of one name. Those
// without isolation come last, each in its own wave, if the target cannot start a server for
// each of them: they can change what others need.
func wavesOf(cases []*scenarioCase) [][]*scenarioCase {
	var passive []*scenarioCase
	var exclusive, waves, open [][]*scenarioCase
	var names []map[string]map[string]any
	for _, c := range cases {
		if c.open() {
			at := slices.IndexFunc(open, func(wave []*scenarioCase) bool { return wave[0].id == c.id })
			if at < 0 {
				at = len(open)
				open = append(open, nil)
			}
			open[at] = append(open[at], c)
			continue
		}
		if c.scenario.Spec.Exclusive {
			if c.installsAdmission() {
				exclusive = append(exclusive, []*scenarioCase{c})
			} else {
				passive = append(passive, c)
			}
			continue
		}
		given := sharedObjects(c)
		at := slices.IndexFunc(names, func(taken map[string]map[string]any) bool { return compatible(taken, given) })
		if at < 0 {
			at = len(waves)
			waves, names = append(waves, nil), append(names, map[string]map[string]any{})
		}
		waves[at] = append(waves[at], c)
		for key, manifest := range given {
			names[at][key] = manifest
		}
	}
	if len(passive) > 0 {
		exclusive = append([][]*scenarioCase{passive}, exclusive...)
	}
	return slices.Concat(exclusive, waves, open)
}

// installsAdmission reports whether the scenario installs webhook configurations or
// policies.
func (c *scenarioCase) installsAdmission() bool {
	all := slices.Clone(c.given)
	for _, step := range c.scenario.Spec.When {
		all = append(all, step.Install...)
	}
	return slices.ContainsFunc(all, isAdmission)
}

// sharedObjects returns the given objects that other scenarios can give too: those whose
// name does not contain the ID of the scenario.
func sharedObjects(c *scenarioCase) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, manifest := range c.given {
		metadata, _ := manifest["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		if runid.Has(name, c.id) || runid.Has(namespace, c.id) || isAdmission(manifest) {
			continue
		}
		kind, _ := manifest["kind"].(string)
		if namespace == "" && c.namespaced(manifest) {
			continue
		}
		out[kind+" "+namespace+"/"+name] = manifest
	}
	return out
}

func compatible(taken, given map[string]map[string]any) bool {
	for key, manifest := range given {
		if other, ok := taken[key]; ok && !reflect.DeepEqual(other, manifest) {
			return false
		}
	}
	return true
}

// wave arranges scenarios, waits until the API server acts on what they installed, lets
// them act, and uninstalls. Its squads do so at the same time, each with its own wait.
func (r *groupRun) wave(ctx context.Context, wave []*scenarioCase, last bool) error {
	actCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	w := &waveRun{groupRun: r, abort: abort, places: make(chan struct{}, r.options.Parallel)}
	squads := squadsOf(wave)
	ready := make([][]*scenarioCase, len(squads))
	var running sync.WaitGroup
	for i, squad := range squads {
		running.Go(func() {
			var err error
			if ready[i], err = r.arrange(actCtx, squad); err != nil {
				abort(err)
				return
			}
			w.proceed(actCtx, ready[i])
		})
	}
	running.Wait()
	if cause := context.Cause(actCtx); cause != nil {
		return cause
	}
	if last && !r.hasRepeats() {
		return nil // Close removes everything
	}
	return r.uninstall(ctx, slices.Concat(ready...))
}

// squadsOf divides a wave by how long its scenarios wait. The API server rereads policies once a
// second: those that install policies in their steps wait for it several times, those that are
// given policies once, and the others need not wait for it.
func squadsOf(wave []*scenarioCase) [][]*scenarioCase {
	var changing, policies, rest []*scenarioCase
	for _, c := range wave {
		switch {
		case slices.ContainsFunc(c.scenario.Spec.When, func(s scenario.Step) bool { return slices.ContainsFunc(s.Install, isPolicy) }):
			changing = append(changing, c)
		case slices.ContainsFunc(c.given, isPolicy):
			policies = append(policies, c)
		default:
			rest = append(rest, c)
		}
	}
	return slices.DeleteFunc([][]*scenarioCase{changing, policies, rest}, func(squad []*scenarioCase) bool { return len(squad) == 0 })
}

// isPolicy reports whether a manifest is a policy or a binding.
func isPolicy(manifest map[string]any) bool {
	return isAdmission(manifest) && strings.Contains(kindOf(manifest).Kind, "Policy")
}

// waveRun is a wave whose squads are running.
type waveRun struct {
	*groupRun
	abort context.CancelCauseFunc
	// places limits how many scenarios act at the same time.
	places chan struct{}
}

// proceed waits until the API server acts on what a squad installed, and runs its
// scenarios.
func (w *waveRun) proceed(ctx context.Context, squad []*scenarioCase) {
	w.options.Progress.Stage(fmt.Sprintf("waiting until the API server acts on what %d scenarios installed", len(squad)))
	if err := w.waitUntilEffective(ctx, squad); err != nil {
		w.abort(err)
		return
	}
	w.options.Progress.Stage(fmt.Sprintf("running %d scenarios", len(squad)))
	waiting, busy := byWait(squad)
	var pools sync.WaitGroup
	pools.Go(func() {
		forEach(waiting, w.options.Parallel, func(c *scenarioCase) { w.act(ctx, c) })
	})
	forEach(crdsLast(busy), w.options.Parallel, func(c *scenarioCase) {
		w.places <- struct{}{}
		defer func() { <-w.places }()
		w.act(ctx, c)
	})
	pools.Wait()
}

// forEach calls a function for each case, at most limit at the same time.
func forEach(cases []*scenarioCase, limit int, do func(*scenarioCase)) {
	var g errgroup.Group
	g.SetLimit(limit)
	for _, c := range cases {
		g.Go(func() error {
			do(c)
			return nil
		})
	}
	_ = g.Wait()
}

// given returns the given objects of the cases.
func given(cases []*scenarioCase) []map[string]any {
	var all []map[string]any
	for _, c := range cases {
		all = append(all, c.given...)
	}
	return all
}

// byWait divides cases into those that mostly wait for a webhook that hangs, and the
// others. The former do not use the processor, so they get additional places.
func byWait(cases []*scenarioCase) (waiting, busy []*scenarioCase) {
	for _, c := range cases {
		if c.waits() {
			waiting = append(waiting, c)
		} else {
			busy = append(busy, c)
		}
	}
	return waiting, busy
}

// waits reports whether a webhook of the scenario delays its answer.
func (c *scenarioCase) waits() bool {
	for _, script := range c.currentScripts() {
		for _, reply := range script.Replies {
			if reply.Fault == hook.Hang || reply.Fault == hook.Slow || reply.Fault == hook.TLSHang || reply.Delay > 0 {
				return true
			}
		}
	}
	return false
}

// crdsLast returns the cases with those that are given a CustomResourceDefinition at the
// end: kube-apiserver delays each create of a custom resource for two seconds while its
// definition is younger than that
// (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
func crdsLast(cases []*scenarioCase) []*scenarioCase {
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

// arrange installs what the scenarios of a squad are given, and returns the scenarios
// for which that succeeded.
func (r *groupRun) arrange(ctx context.Context, squad []*scenarioCase) ([]*scenarioCase, error) {
	r.options.Progress.Stage(fmt.Sprintf("arranging %d scenarios", len(squad)))
	var mu sync.Mutex
	failed := map[string]error{} // by ID of the scenario
	// In reverse: the sooner a definition exists, the sooner it is old enough.
	order := crdsLast(leaders(squad))
	slices.Reverse(order)
	forEach(order, r.options.Parallel, func(c *scenarioCase) {
		err := ctx.Err()
		if err == nil {
			err = c.arrange(ctx)
		}
		if err != nil {
			mu.Lock()
			failed[c.id] = err
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	shareSandboxes(squad)
	var ready []*scenarioCase
	for _, c := range squad {
		err, bad := failed[c.id]
		if !bad {
			ready = append(ready, c)
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		if cause := c.nothingAboutAdmission(&failure{err: err}); cause != "" {
			r.repeatLater(c.scenario, "arrange: "+cause)
			continue
		}
		verdict := framework.Errored
		if errors.Is(err, framework.ErrForeign) || errors.Is(err, framework.ErrNotServed) {
			verdict = framework.Unsupported
		}
		outcome := report.Outcome{Verdict: verdict, Reason: "arrange: " + err.Error(), NotServed: notServed(err)}
		if isMistake(err) {
			outcome.Reason, outcome.Mistake = err.Error(), true
		}
		if first := leaderOf(c, squad); first != c {
			outcome.Reason = "arrange: this case shares its policies with " + first.scenario.Metadata.Name + ", where the reason is"
		}
		r.finish(c.scenario, outcome)
	}
	return ready, nil
}

// waitUntilEffective waits until the API server acts on what the scenarios installed. If
// it never does, nothing can be observed.
func (r *groupRun) waitUntilEffective(ctx context.Context, ready []*scenarioCase) error {
	err := r.effective(ctx, given(ready))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := r.lost(ctx, err); lost != nil {
		return lost
	}
	verdict := framework.Errored
	if errors.Is(err, framework.ErrTimeout) {
		verdict = framework.Inconclusive
	}
	for _, c := range ready {
		r.finish(c.scenario, report.Outcome{Verdict: verdict, Reason: err.Error()})
	}
	return err
}

// effective waits until the API server acts on what the scenarios installed or removed. It
// begins again if the API server did not respond in between.
func (r *groupRun) effective(ctx context.Context, of []map[string]any) error {
	for left := repeatLimit; ; left-- {
		err := r.target.WaitUntilEffective(ctx, of)
		cause := (&failure{err: err}).infrastructure()
		if err == nil || cause == "" || left == 0 || ctx.Err() != nil || r.lost(ctx, err) != nil {
			return err
		}
		r.options.Progress.Stage("waiting again: " + cause)
	}
}

// act carries out the steps of one scenario and notes its outcome.
func (w *waveRun) act(ctx context.Context, c *scenarioCase) {
	if ctx.Err() != nil {
		return
	}
	began := time.Now()
	outcome := report.Outcome{Verdict: framework.Pass}
	for i, step := range c.scenario.Spec.When {
		failure := c.at(fmt.Sprintf("when[%d]", i)).step(ctx, step)
		if failure == nil {
			continue
		}
		if ctx.Err() != nil {
			return // the run ended, not the scenario
		}
		if lost := w.lost(ctx, failure.err); lost != nil {
			w.abort(lost)
			return
		}
		line := 0
		if i < len(c.scenario.Lines) {
			line = c.scenario.Lines[i]
		}
		outcome = failure.outcome(c, i+1, line)
		if cause := c.nothingAboutAdmission(failure); cause != "" {
			w.repeatLater(c.scenario, cause)
			return
		}
		break
	}
	outcome.DurationSeconds = time.Since(began).Seconds()
	outcome = w.plugins.judge(c.scenario, outcome)
	if w.disturbed(ctx, c, outcome) {
		return
	}
	w.finish(c.scenario, outcome)
}

// uninstall removes what the scenarios installed to decide about requests, and waits
// until the API server no longer acts on it.
func (r *groupRun) uninstall(ctx context.Context, ready []*scenarioCase) error {
	errs := make(chan error, len(ready)+1)
	forEach(leaders(ready), r.options.Parallel, func(c *scenarioCase) { errs <- c.sandbox.Uninstall(ctx) })
	close(errs)
	var err error
	for one := range errs {
		err = errors.Join(err, one)
	}
	if err == nil {
		err = r.effective(ctx, append(given(ready), writtenByOpen(ready)...))
	}
	if err != nil {
		return fmt.Errorf("uninstall scenarios: %w", err)
	}
	return nil
}

// The limits of lost: how long an API server may take to restart, and the time between
// two questions.
const (
	restartLimit = 30 * time.Second
	restartPause = 250 * time.Millisecond
)

// errGone marks the end of a run whose API server no longer responds.
var errGone = errors.New("the API server is gone")

// lost returns an errGone if the API server itself is gone: a response was lost, and it
// does not respond for as long as a restart takes.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, framework.ErrNoResponse) {
		return nil
	}
	var gone error
	_ = wait.PollUntilContextTimeout(ctx, restartPause, restartLimit, true, func(ctx context.Context) (bool, error) {
		gone = r.target.Alive(ctx)
		return gone == nil, nil
	})
	if gone != nil {
		return fmt.Errorf("%w: %w", errGone, gone)
	}
	return nil
}
