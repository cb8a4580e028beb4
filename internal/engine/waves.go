package engine

import (
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
	"github.com/admissiontest/admissiontest/internal/engine/unseen"
	"github.com/admissiontest/admissiontest/internal/report"
)

// waves runs the scenarios of one server.
func (r *groupRun) waves(ctx context.Context, g group) error {
	if prepare := r.target.Optional().Prepare; prepare != nil && r.foreign == nil {
		r.refused(ctx, prepare(ctx), nil) // another error will occur again, and is reported then
	}
	r.findPlugins(ctx, g)
	var cases []*execution.Case
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
		if s.Spec.Isolation == scenario.IsolationNone && (r.target.Optional().Confined != nil || r.target.Info().Served) {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: openUnsupported})
			continue
		}
		if reason := r.unseen(s).Unusable(s); reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
			continue
		}
		c, err := r.newCase(s, numbers.of(s, r.number+i+1))
		if err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			continue
		}
		if err := c.Foreign(); err != nil {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: err.Error()})
			continue
		}
		r.noteNotSeen(c.Unseen)
		cases = append(cases, c)
	}
	r.number += len(g.scenarios)
	if r.foreign == nil {
		if err := r.inWaves(ctx, cases); err != nil && !r.refused(ctx, err, cases) {
			return err
		}
	}
	r.endForeign(cases)
	return nil
}

// inWaves runs cases in waves, and repeats those whose outcomes say nothing.
func (r *groupRun) inWaves(ctx context.Context, cases []*execution.Case) error {
	r.noteOtherRuns(ctx, cases)
	waves := wavesOf(cases)
	for i, wave := range waves {
		if err := r.wave(ctx, wave, i == len(waves)-1); err != nil {
			return err
		}
	}
	return r.repeat(ctx)
}

// refused reports whether an error is a refusal by a webhook or policy that neither the run nor one of the
// cases installed, without which no scenario can run on the server. It notes the refusal.
func (r *groupRun) refused(ctx context.Context, err error, cases []*execution.Case) bool {
	own := r.options.Install.Objects()
	for _, c := range cases {
		own = append(own, c.Own()...)
	}
	err = execution.OfForeign(ctx, r.target, err, own)
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.As(err, &r.foreign)
}

// endForeign ends the cases that have no outcome after such a refusal, if there was one.
func (r *groupRun) endForeign(cases []*execution.Case) {
	if r.foreign == nil {
		return
	}
	for _, c := range cases {
		r.mu.Lock()
		_, known := r.outcomes[c.Scenario.Metadata.Name]
		r.mu.Unlock()
		if !known {
			r.finish(c.Scenario, r.foreign.Outcome())
		}
	}
}

// unseen returns the webhooks under test of a scenario whose calls no Hook receives.
func (r *groupRun) unseen(s scenario.Scenario) unseen.Webhooks {
	return unseen.Of(s, unseen.Options{
		Endpoints: r.options.Endpoints, Installed: r.options.Install.Objects(),
		URLs: slices.Contains(r.target.Info().Capabilities, framework.CapabilityCredentials),
	})
}

// newCase makes a case of a scenario with a number.
func (r *groupRun) newCase(s scenario.Scenario, number int) (*execution.Case, error) {
	c, err := execution.New(s, r.target, execution.Options{
		Number: number, Patience: r.options.Patience, Unseen: r.unseen(s), Install: r.options.Install,
		Secrets: r.noteSecrets(s), Names: &r.names,
	})
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.cases == nil {
			r.cases = map[string]*execution.Case{}
		}
		r.cases[s.Metadata.Name] = c
	}
	return c, err
}

// noteNotSeen notes for the report the webhooks whose calls no Hook receives.
func (r *run) noteNotSeen(of unseen.Webhooks) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notSeen == nil {
		r.notSeen = unseen.Webhooks{}
	}
	maps.Copy(r.notSeen, of)
}

// wave installs what scenarios are given, waits until the API server acts on it, runs the steps,
// and uninstalls. Its squads do this at the same time, and each waits for its own objects.
func (r *groupRun) wave(ctx context.Context, wave []*execution.Case, last bool) error {
	actCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	w := &waveRun{groupRun: r, abort: abort, places: make(chan struct{}, r.options.Parallel)}
	squads := squadsOf(wave)
	ready := make([][]*execution.Case, len(squads))
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
	if last && !r.hasRepeats() && !r.target.Info().Served {
		r.left = slices.Concat(ready...)
		return nil // Close removes everything, or the API server ends
	}
	return r.uninstall(ctx, slices.Concat(ready...))
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
func (w *waveRun) proceed(ctx context.Context, squad []*execution.Case) {
	w.options.Progress.Stage(fmt.Sprintf("waiting until the API server uses what %d scenarios installed", len(squad)))
	if err := w.waitUntilEffective(ctx, squad); err != nil {
		w.abort(err)
		return
	}
	w.options.Progress.Stage(fmt.Sprintf("running %d scenarios", len(squad)))
	waiting, busy := byWait(squad)
	var pools sync.WaitGroup
	pools.Go(func() {
		forEach(waiting, w.options.Parallel, func(c *execution.Case) { w.act(ctx, c) })
	})
	forEach(crdsLast(busy), w.options.Parallel, func(c *execution.Case) {
		w.places <- struct{}{}
		defer func() { <-w.places }()
		w.act(ctx, c)
	})
	pools.Wait()
}

// forEach calls a function for each case, at most limit at the same time.
func forEach(cases []*execution.Case, limit int, do func(*execution.Case)) {
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

// arrange installs what the scenarios of a squad are given, and returns the scenarios
// for which that succeeded.
func (r *groupRun) arrange(ctx context.Context, squad []*execution.Case) ([]*execution.Case, error) {
	r.options.Progress.Stage(fmt.Sprintf("installing what %d scenarios need", len(squad)))
	began, lostBefore := time.Now(), strangers(r.target).Lost
	var mu sync.Mutex
	failed := map[string]error{} // by ID of the scenario
	// In reverse: the sooner a definition exists, the sooner it is old enough.
	order := crdsLast(leaders(squad))
	slices.Reverse(order)
	forEach(order, r.options.Parallel, func(c *execution.Case) {
		err := ctx.Err()
		if err == nil {
			err = c.Arrange(ctx, followers(c, squad)...)
		}
		if err != nil {
			mu.Lock()
			failed[c.ID] = err
			mu.Unlock()
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	shareSandboxes(squad)
	var ready []*execution.Case
	for _, c := range squad {
		err, bad := failed[c.ID]
		if !bad {
			ready = append(ready, c)
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		if cause := r.nothing(err, began); cause != "" {
			r.repeatLater(c.Scenario, "setup: "+cause)
			continue
		}
		outcome := execution.NotArranged(err)
		if canDependOnLost(outcome) && r.lostSince(lostBefore) {
			r.repeatLater(c.Scenario, "setup: "+lostCause)
			continue
		}
		if first := leaderOf(c, squad); first != c && outcome.Verdict != framework.Inconclusive {
			outcome.Reason = "setup: this case uses the same policies as " + first.Scenario.Metadata.Name + ": the reason is there"
		}
		r.finish(c.Scenario, outcome)
	}
	return ready, nil
}

// waitUntilEffective waits until the API server acts on what the scenarios installed. If
// it never does, nothing can be observed.
func (r *groupRun) waitUntilEffective(ctx context.Context, ready []*execution.Case) error {
	lostBefore := strangers(r.target).Lost
	err := r.effective(ctx, given(ready))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := r.lost(ctx, err); lost != nil {
		return lost
	}
	if r.refused(ctx, err, ready) {
		return err
	}
	verdict := framework.Errored
	if r.lostSince(lostBefore) {
		verdict, err = framework.Inconclusive, fmt.Errorf("%s: %w", lostCause, err)
	}
	if errors.Is(err, framework.ErrTimeout) {
		verdict = framework.Inconclusive
	}
	for _, c := range ready {
		r.finish(c.Scenario, report.Outcome{Verdict: verdict, Reason: err.Error()})
	}
	return err
}

// effective waits until the API server acts on what the scenarios installed or removed. It
// begins again if the API server did not respond in between.
func (r *groupRun) effective(ctx context.Context, of []map[string]any) error {
	for left := repeatLimit; ; left-- {
		began := time.Now()
		err := r.target.WaitUntilEffective(ctx, of)
		cause := r.nothing(err, began)
		if err == nil || cause == "" || left == 0 || ctx.Err() != nil || r.lost(ctx, err) != nil {
			return err
		}
		r.options.Progress.Stage("waiting again: " + cause)
	}
}

// act carries out the steps of one scenario and notes its outcome.
func (w *waveRun) act(ctx context.Context, c *execution.Case) {
	if ctx.Err() != nil {
		return
	}
	began, lostBefore := time.Now(), strangers(w.target).Lost
	outcome := report.Outcome{Verdict: framework.Pass}
	if failure := c.Act(ctx); failure != nil {
		if ctx.Err() != nil {
			return // the run ended, not the scenario
		}
		if lost := w.lost(ctx, failure.Err); lost != nil {
			w.abort(lost)
			return
		}
		outcome = c.Outcome(failure)
		if cause := c.NothingAboutAdmission(failure); cause != "" {
			w.repeatLater(c.Scenario, cause)
			return
		}
	}
	if w.pauses.Since(began) {
		w.repeatLater(c.Scenario, paused) // what was observed can be right only because of the pause
		return
	}
	if outcome.Verdict == framework.Fail && w.answers.lateSince(began) {
		w.repeatLater(c.Scenario, serverPaused)
		return
	}
	outcome.DurationSeconds = time.Since(began).Seconds()
	outcome = w.plugins.judge(c.Scenario, outcome)
	if canDependOnLost(outcome) && w.lostSince(lostBefore) {
		w.repeatLater(c.Scenario, lostCause)
		return
	}
	if w.disturbed(ctx, c, outcome) {
		return
	}
	w.finish(c.Scenario, outcome)
}

// uninstall removes what the scenarios installed to decide about requests, and waits
// until the API server no longer acts on it.
func (r *groupRun) uninstall(ctx context.Context, ready []*execution.Case) error {
	errs := make(chan error, len(ready)+1)
	forEach(leaders(ready), r.options.Parallel, func(c *execution.Case) {
		errs <- r.unpaused(func() error { return c.Uninstall(ctx) })
	})
	close(errs)
	var err error
	for one := range errs {
		err = errors.Join(err, one)
	}
	if err == nil {
		err = r.effective(ctx, append(given(ready), written(ready)...))
	}
	for _, c := range leaders(ready) {
		if err == nil {
			err = r.unpaused(func() error { return c.RemoveStored(ctx) })
		}
	}
	if err != nil {
		return fmt.Errorf("uninstall scenarios: %w", err)
	}
	return nil
}
