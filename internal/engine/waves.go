package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// waves runs the scenarios of one server.
func (r *groupRun) waves(ctx context.Context, g group) error {
	if prepare := r.target.Optional().Prepare; prepare != nil && r.foreign == nil {
		err := prepare(ctx)
		if errors.Is(err, target.ErrNoDryRun) {
			return err
		}
		r.refused(ctx, err, nil) // another error will occur again, and is reported then
	}
	isolate, err := r.isolate()
	if err != nil {
		return err
	}
	r.findPlugins(ctx, g)
	var setups []*execution.Setup
	known := lanes{install: r.options.Install.Objects(), namespaced: r.target.Namespaced}
	for i := range g.scenarios { // kinds of the cluster, of which the files say nothing
		g.scenarios[i].Alone = g.scenarios[i].Alone || known.alone(g.scenarios[i])
	}
	for _, s := range scenario.Keep(g.scenarios, r.canRun) {
		setup := r.newSetup(s)
		if setup == nil {
			continue
		}
		setup.Keep(func(c *execution.Case) bool {
			reason := r.lacking(c)
			return reason == "" || r.decided(c.Scenario, framework.Unsupported, reason)
		})
		if len(setup.Cases) > 0 {
			r.noteNotSeen(setup.Unseen)
			setups = append(setups, setup)
		}
	}
	if r.foreign == nil {
		if err := r.inWaves(ctx, setups, isolate); err != nil && !r.refused(ctx, err, setups) {
			return err
		}
	}
	r.endForeign(setups)
	return nil
}

// decided notes the outcome of a scenario or case that does not run. It returns false.
func (r *run) decided(s scenario.Scenario, verdict framework.Verdict, reason string) bool {
	r.finish(s, report.Outcome{Verdict: verdict, Reason: reason})
	return false
}

// canRun reports whether a scenario can run on the server. It notes the outcome of one that cannot.
func (r *groupRun) canRun(s scenario.Scenario) bool {
	if reason, ok := r.group.skip[s.Metadata.Name]; ok {
		return r.decided(s, framework.Skipped, reason)
	}
	reason := cmp.Or(unsupported(s, r.target.Info()), r.plugins.missing(s))
	switch {
	case reason != "":
	case s.Alone && r.target.Optional().Confined != nil:
		reason = aloneUnsupported
	case s.Spec.Isolation == scenario.IsolationNone && r.target.Info().Served:
		reason = openUnsupported
	}
	unseen := r.unseen(s)
	undecidable := unseen.Undecidable(s)
	if reason = cmp.Or(reason, unseen.Unusable(s)); reason == "" && undecidable == "" {
		return true
	}
	r.noteNotSeen(unseen)
	if reason == "" {
		return r.decided(s, framework.Inconclusive, undecidable)
	}
	return r.decided(s, framework.Unsupported, reason)
}

// inWaves runs scenarios in waves, and repeats those whose outcomes say nothing.
func (r *groupRun) inWaves(ctx context.Context, setups []*execution.Setup, isolate bool) error {
	waves := wavesOf(setups, isolate)
	for i, wave := range waves {
		if err := r.wave(ctx, wave, i == len(waves)-1); err != nil {
			return err
		}
	}
	return r.repeat(ctx, isolate)
}

// refused reports whether an error is a refusal by a webhook or policy that neither the run nor one of the
// scenarios installed, without which no scenario can run on the server. It notes the refusal.
func (r *groupRun) refused(ctx context.Context, err error, setups []*execution.Setup) bool {
	own := r.options.Install.Objects()
	for _, s := range setups {
		own = append(own, s.Own()...)
	}
	err = execution.OfForeign(ctx, r.target, err, own)
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.As(err, &r.foreign)
}

// endForeign ends the cases that have no outcome after such a refusal, if there was one.
func (r *groupRun) endForeign(setups []*execution.Setup) {
	for _, c := range casesOf(setups) {
		r.mu.Lock()
		_, known := r.outcomes[c.Scenario.Metadata.Name]
		r.mu.Unlock()
		if !known && r.foreign != nil {
			r.finish(c.Scenario, r.foreign.Outcome())
		}
	}
}

// unseen returns the webhooks under test of a scenario whose calls no Hook receives.
func (r *groupRun) unseen(s scenario.Scenario) expect.Unseen {
	return expect.UnseenOf(s, expect.UnseenOptions{
		Endpoints: r.options.Endpoints, Installed: r.options.Install.Objects(),
		URLs: slices.Contains(r.target.Info().Capabilities, framework.CapabilityCredentials),
	})
}

// newSetup makes the Setup of a scenario, with a new number. If that fails, it returns nil, and the error is the
// outcome.
func (r *groupRun) newSetup(s scenario.Scenario) *execution.Setup {
	r.number++
	setup, err := execution.New(s, r.target, execution.Options{
		Number: r.number, Patience: r.options.Patience, Unseen: r.unseen(s), Install: r.options.Install,
		Results: r.options.Results,
	})
	if err != nil {
		r.finishAll([]scenario.Scenario{s}, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range setup.Cases {
		r.cases[c.Scenario.Metadata.Name] = c
	}
	return setup
}

// noteNotSeen notes for the report the webhooks whose calls no Hook receives.
func (r *run) noteNotSeen(of expect.Unseen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.notSeen, of)
}

// wave installs what scenarios are given, waits until the API server acts on it, runs the steps,
// and uninstalls. Its squads do this at the same time, and each waits for its own objects.
func (r *groupRun) wave(ctx context.Context, wave []*execution.Setup, last bool) error {
	actCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	w := &waveRun{groupRun: r, abort: abort, slots: make(chan struct{}, r.options.Parallel)}
	squads := squadsOf(wave)
	var running sync.WaitGroup
	for _, squad := range squads {
		running.Go(func() {
			ready, err := r.arrange(actCtx, squad)
			if err != nil {
				abort(err)
				return
			}
			w.proceed(actCtx, ready)
		})
	}
	running.Wait()
	if cause := context.Cause(actCtx); cause != nil {
		return cause
	}
	// Also what is not ready, because one of its objects could not be installed: the others are there.
	installed := slices.DeleteFunc(slices.Clone(wave), func(s *execution.Setup) bool { return !s.Begun() })
	if last && len(r.toRepeat) == 0 && !r.target.Info().Served {
		r.left = installed
		return nil // Close removes everything, or the API server ends
	}
	return r.uninstall(ctx, installed)
}

// waveRun is a wave whose squads are running.
type waveRun struct {
	*groupRun
	abort context.CancelCauseFunc
	// slots limits how many cases act at the same time.
	slots chan struct{}
}

// proceed waits until the API server acts on what a squad installed, and runs its
// scenarios.
func (w *waveRun) proceed(ctx context.Context, squad []*execution.Setup) {
	w.stage("waiting until the API server uses what %d scenarios installed", squad)
	squad, err := w.waitUntilEffective(ctx, squad)
	if err != nil {
		w.abort(err)
		return
	}
	w.stage("running %d scenarios", squad)
	var pool errgroup.Group
	for _, s := range inOrder(squad) {
		busy := !s.Waits() // what mostly waits for a webhook that hangs does not use the processor
		for _, c := range s.Cases {
			if busy {
				w.slots <- struct{}{}
			}
			pool.Go(func() error {
				w.act(ctx, c)
				if busy {
					<-w.slots
				}
				return nil
			})
		}
	}
	_ = pool.Wait()
}

// inOrder returns scenarios in the order in which they act: first those that mostly wait, and last those with a given
// CustomResourceDefinition: kube-apiserver delays each create of a custom resource for two seconds while its
// definition is younger than that (k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go).
func inOrder(squad []*execution.Setup) []*execution.Setup {
	rank := func(s *execution.Setup) int {
		switch {
		case slices.ContainsFunc(s.Given, func(manifest map[string]any) bool { return manifest["kind"] == "CustomResourceDefinition" }):
			return 2
		case s.Waits():
			return 0
		default:
			return 1
		}
	}
	order := slices.Clone(squad)
	slices.SortStableFunc(order, func(a, b *execution.Setup) int { return cmp.Compare(rank(a), rank(b)) })
	return order
}

// stage shows what happens now with the scenarios of a squad, unless it has none any more.
func (r *groupRun) stage(format string, squad []*execution.Setup) {
	if count := len(casesOf(squad)); count > 0 {
		r.options.Progress.Stage(fmt.Sprintf(format, count))
	}
}

// forEach calls a function for each of several values, at most limit at the same time.
func forEach[T any](all []T, limit int, do func(T)) {
	var g errgroup.Group
	g.SetLimit(limit)
	for _, one := range all {
		g.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = g.Wait()
}

// arrange installs what the scenarios of a squad are given, and returns the scenarios
// for which that succeeded.
func (r *groupRun) arrange(ctx context.Context, squad []*execution.Setup) ([]*execution.Setup, error) {
	r.stage("installing what %d scenarios need", squad)
	since := r.now()
	var mu sync.Mutex
	failed := map[*execution.Setup]error{}
	// In reverse: the sooner a definition exists, the sooner it is old enough.
	order := inOrder(squad)
	slices.Reverse(order)
	forEach(order, r.options.Parallel, func(s *execution.Setup) {
		if err := s.Arrange(ctx); err != nil {
			mu.Lock()
			failed[s] = err
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var ready []*execution.Setup
	for _, s := range squad {
		err, bad := failed[s]
		if !bad {
			ready = append(ready, s)
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		r.notArranged(s, err, since)
	}
	return ready, nil
}

// notArranged ends the cases of a scenario after an error of Arrange.
func (r *groupRun) notArranged(s *execution.Setup, err error, since moment) {
	outcome := execution.NotArranged(err)
	cause := r.saysNothing(outcome, expect.InfrastructureError(err), since)
	for i, c := range s.Cases {
		if i > 0 && outcome.Verdict != framework.Inconclusive {
			outcome.Reason = "setup: this case uses the same policies as " + s.Cases[0].Scenario.Metadata.Name + ": the reason is there"
		}
		if cause != "" {
			r.again(c, cause, nil)
		} else {
			r.finish(c.Scenario, outcome)
		}
	}
}

// act carries out the steps of one case and notes its outcome.
func (w *waveRun) act(ctx context.Context, c *execution.Case) {
	if ctx.Err() != nil {
		return
	}
	since := w.now()
	outcome, cause := report.Outcome{Verdict: framework.Pass}, ""
	failure := c.Act(ctx)
	if failure != nil {
		if ctx.Err() != nil {
			return // the run ended, not the scenario
		}
		if lost := w.lost(ctx, failure.Err); lost != nil {
			w.abort(lost)
			return
		}
		outcome, cause = c.Outcome(failure), failure.NothingAboutAdmission()
	}
	if cause = w.saysNothing(outcome, cause, since); cause != "" {
		w.again(c, cause, failure)
		return
	}
	outcome.DurationSeconds = time.Since(since.time).Seconds()
	w.finish(c.Scenario, w.perhapsOff(c.Scenario, outcome))
}

// uninstall removes what the scenarios installed to decide about requests. After a scenario that runs alone, it waits until
// the API server no longer acts on it.
func (r *groupRun) uninstall(ctx context.Context, ready []*execution.Setup) error {
	var mu sync.Mutex
	var err error
	forEach(ready, r.options.Parallel, func(s *execution.Setup) {
		one := s.Uninstall(ctx)
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, one)
	})
	alone := len(ready) > 0 && ready[0].Open()
	if err == nil && alone {
		of := given(ready)
		for _, manifest := range ready[0].Own() { // also what was not installed, but written
			of = append(of, map[string]any{"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]})
		}
		err = r.waitUntilRemoved(ctx, of)
	}
	for _, s := range ready {
		if err == nil {
			err = s.RemoveStored(ctx)
		}
	}
	if err != nil && alone && ctx.Err() == nil {
		return fmt.Errorf("%w: %s: %w", errNotClean, ready[0].Scenario.Metadata.Name, err)
	}
	if err != nil {
		return fmt.Errorf("uninstall scenarios: %w", err)
	}
	return nil
}

// wavesOf divides the scenarios of one server into waves: all that are narrowed to their namespaces at once, and then
// each other one alone. Isolate makes a wave for each scenario.
func wavesOf(setups []*execution.Setup, isolate bool) [][]*execution.Setup {
	var together []*execution.Setup
	var waves [][]*execution.Setup
	for _, s := range setups {
		if s.Open() || isolate {
			waves = append(waves, []*execution.Setup{s})
		} else {
			together = append(together, s)
		}
	}
	if len(together) > 0 {
		waves = append([][]*execution.Setup{together}, waves...)
	}
	return waves
}

// squadsOf divides a wave by how long its scenarios wait. The API server rereads policies once a
// second. Scenarios that install policies in their steps wait for that several times, scenarios with
// given policies wait once, and the others do not wait.
func squadsOf(wave []*execution.Setup) [][]*execution.Setup {
	var changing, policies, rest []*execution.Setup
	for _, s := range wave {
		switch {
		case slices.ContainsFunc(s.Scenario.Spec.When, func(s scenario.Step) bool { return slices.ContainsFunc(s.Install, object.IsPolicy) }):
			changing = append(changing, s)
		case slices.ContainsFunc(s.Given, object.IsPolicy):
			policies = append(policies, s)
		default:
			rest = append(rest, s)
		}
	}
	return slices.DeleteFunc([][]*execution.Setup{changing, policies, rest}, func(squad []*execution.Setup) bool { return len(squad) == 0 })
}

// casesOf returns the cases of scenarios.
func casesOf(setups []*execution.Setup) []*execution.Case {
	var all []*execution.Case
	for _, s := range setups {
		all = append(all, s.Cases...)
	}
	return all
}

// given returns the given objects of the scenarios that are installed.
func given(setups []*execution.Setup) []map[string]any {
	var all []map[string]any
	for _, s := range setups {
		all = append(all, s.Installed()...)
	}
	return all
}
