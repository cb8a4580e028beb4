package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// group is the scenarios of one server profile. A nil profile is the default server.
type group struct {
	profile *scenario.Server
	key     string
	// alone is true for a group of scenarios without a profile that run alone, on their own API server if the provider
	// can start one, otherwise on the default one.
	alone     bool
	scenarios []scenario.Scenario
	skip      map[string]string
}

// what describes the group in progress lines.
func (g group) what() string {
	switch {
	case g.profile == nil:
		return ""
	case g.alone && len(g.scenarios) > 1:
		return fmt.Sprintf(" for %d scenarios that run one at a time", len(g.scenarios))
	case g.alone:
		return " for " + g.first() + " alone"
	}
	return " with custom flags for " + g.first()
}

// first returns the name of the first scenario or case.
func (g group) first() string { return scenario.Cases(g.scenarios)[0].Metadata.Name }

// ServerKey returns the same for scenarios that use the same API server: the empty string for the default one.
func ServerKey(s scenario.Scenario) string {
	if s.Spec.Server == nil {
		return ""
	}
	text, _ := json.Marshal(s.Spec.Server) // json sorts the keys of maps
	return string(text)
}

// ownServers is the number of API servers for the scenarios that run alone, besides the servers of scenarios that have
// their own. With fewer scenarios than fewAlone, they run on the default server, after the others: a start takes seconds.
const (
	ownServers = 2
	fewAlone   = 8
)

// groupScenarios divides scenarios by the server that they need: the default server
// first. Each scenario without isolation needs its own, and so does each that changes files of its server. One with a
// webhook under test needs the default server, whose kubeconfig the program of the webhook can have.
func groupScenarios(scenarios []scenario.Scenario, skip map[string]string, lanes lanes) []group {
	byKey := map[string]*group{}
	var alone []scenario.Scenario
	add := func(key string, g group, s scenario.Scenario) {
		if byKey[key] == nil {
			g.key, g.skip = key, skip
			byKey[key] = &g
		}
		byKey[key].scenarios = append(byKey[key].scenarios, s)
	}
	for i, s := range scenarios {
		key, g, open := ServerKey(s), group{profile: s.Spec.Server}, s.Spec.Isolation == scenario.IsolationNone
		s.Alone = lanes.alone(s)
		switch {
		case open && g.profile == nil:
			add(fmt.Sprintf(" %s %d", s.Metadata.Name, i), group{profile: &scenario.Server{}, alone: true}, s)
		case open || s.ChangesFiles():
			add(fmt.Sprintf("%s %s %d", key, s.Metadata.Name, i), g, s)
		case s.Alone && g.profile == nil && len(lanes.install) == 0 && len(expect.WebhooksUnderTest(s)) == 0:
			alone = append(alone, s)
		default:
			add(key, g, s)
		}
	}
	for i, s := range alone {
		if len(alone) < fewAlone {
			add("", group{}, s)
			continue
		}
		add(fmt.Sprintf(" %d", i%ownServers), group{profile: &scenario.Server{}, alone: true}, s) // first of those with a profile
	}
	var out []group
	for _, g := range byKey {
		slices.SortStableFunc(g.scenarios, func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int { return strings.Compare(a.key, b.key) })
	return out
}

// parallelServers limits the number of API servers with a profile that run at the same
// time.
const parallelServers = 2 + ownServers

// groups runs the scenarios of every server: first the scenarios of the default server, which are most of them, so
// the first verdicts come early. Groups with a profile are small and mostly wait for their servers to start
// and to stop, so they run at the same time. Scenarios without isolation that do not get their own server
// run last, on the default server.
func (r *run) groups(ctx context.Context, all []group) error {
	byDefault := group{}
	if len(all) > 0 && all[0].profile == nil {
		byDefault, all = all[0], all[1:]
		if err := r.options.Provider.Check(ctx); r.endRefused(ctx, byDefault, err) {
			byDefault.scenarios = nil
		} else if err != nil {
			return err
		}
	}
	// Once for all groups: this can mean building the API server, and can fail.
	var err error
	if r.version, err = r.options.Provider.Version(ctx); err != nil {
		return err
	}
	main, err := r.start(ctx, byDefault)
	if err != nil {
		return err
	}
	if err := main.runGroup(ctx); err != nil {
		closed := main.close(ctx, err)
		if !errors.Is(err, errNotClean) || ctx.Err() != nil {
			return errors.Join(err, closed)
		}
		main = nil
		all = append(all, group{profile: &scenario.Server{}, alone: true, scenarios: r.notFinished(byDefault.scenarios), skip: byDefault.skip})
	}
	err = r.profiles(ctx, all)
	if left := r.noOwnServer; len(left) > 0 && ctx.Err() == nil {
		again := group{scenarios: left, skip: byDefault.skip}
		if main == nil {
			var failed error
			if main, failed = r.start(ctx, again); failed != nil {
				return errors.Join(err, failed)
			}
		} else {
			main.group = again
		}
		err = errors.Join(err, main.runGroup(ctx))
	}
	return errors.Join(err, main.close(ctx, err))
}

// profiles runs the groups with a profile. The end of one of their servers ends the others.
func (r *run) profiles(ctx context.Context, all []group) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	errs := make([]error, len(all))
	var servers errgroup.Group
	servers.SetLimit(parallelServers)
	for i, g := range all {
		servers.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = r.group(ctx, g)
			}
			if errors.Is(errs[i], target.ErrGone) {
				abort(errs[i])
			}
			return nil
		})
	}
	_ = servers.Wait() // the errors are in errs
	if cause := context.Cause(ctx); errors.Is(cause, target.ErrGone) {
		return cause // the others are its consequences
	}
	return errors.Join(errs...)
}

// groupRun is the run of one group. A nil one has nothing to run.
type groupRun struct {
	*run
	group  group
	target target.Target
	// number is the number of scenarios that the target has seen.
	number int
	// left has the scenarios of the last wave, which are still installed.
	left []*execution.Setup
	// plugins is set before the first wave.
	plugins plugins
	// toRepeat has the names of the scenarios and cases whose outcome says nothing, and why. It is guarded by run.mu.
	toRepeat map[string]string
	// answers has the answers of the server to the question whether it is alive.
	answers answers
	// foreign is why no scenario can run on the server, or nil.
	foreign *execution.ForeignError
	// ineffective has the errors of kinds of configurations that the server did not use in time. It is guarded by run.mu.
	ineffective map[string]error
}

// observesPlugins reports whether a scenario of the group expects calls of admission plugins.
func (g group) observesPlugins() bool {
	return slices.ContainsFunc(scenario.Cases(g.scenarios), func(s scenario.Scenario) bool {
		_, skipped := g.skip[s.Metadata.Name]
		return !skipped && s.ObservesPlugins()
	})
}

// errNotClean means that the API server of a scenario that runs alone could not be cleaned for the next one.
var errNotClean = errors.New("what a scenario left could not be removed")

// group runs the scenarios of one server profile. If the server cannot be cleaned, another one is started for the rest.
func (r *run) group(ctx context.Context, g group) error {
	for {
		one, err := r.start(ctx, g)
		if err != nil {
			return err
		}
		err = one.runGroup(ctx)
		closed := one.close(ctx, err)
		left := r.notFinished(g.scenarios)
		if !errors.Is(err, errNotClean) || len(scenario.Cases(left)) == len(scenario.Cases(g.scenarios)) || ctx.Err() != nil {
			return errors.Join(err, closed)
		}
		r.options.Progress.Stage("starting another API server: " + report.FirstLine(err.Error()))
		g.scenarios = left
	}
}

// notFinished returns the scenarios and cases without an outcome.
func (r *run) notFinished(scenarios []scenario.Scenario) []scenario.Scenario {
	r.mu.Lock()
	defer r.mu.Unlock()
	return scenario.Keep(scenarios, func(s scenario.Scenario) bool {
		_, finished := r.outcomes[s.Metadata.Name]
		return !finished
	})
}

// start starts the server of a group. It returns nil if the outcomes of its scenarios are known without
// that, or if the scenarios do not get their own server.
func (r *run) start(ctx context.Context, g group) (*groupRun, error) {
	g = r.decideBeforeStart(g)
	if len(g.scenarios) == 0 {
		return nil, nil
	}
	began := time.Now()
	r.options.Progress.Stage("starting the API server" + g.what())
	started, err := r.options.Provider.Start(ctx, target.StartOptions{
		Profile: g.profile, Endpoints: r.options.Endpoints,
		ObservePlugins: r.options.ObservePlugins || g.observesPlugins(), Patience: r.options.Patience,
	})
	if errors.Is(err, target.ErrNoProfiles) && g.alone {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noOwnServer = append(r.noOwnServer, g.scenarios...)
		return nil, nil
	}
	if errors.Is(err, target.ErrNoProfiles) {
		r.finishAll(g.scenarios, report.Outcome{Verdict: framework.Unsupported, Reason: err.Error()})
		return nil, nil
	}
	if g.profile != nil && g.profile.Fails != "" {
		return nil, r.judgeStart(ctx, g, started, err)
	}
	if r.endRefused(ctx, g, err) || r.notStarted(g, err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	one := &groupRun{run: r, group: g, target: started, toRepeat: map[string]string{}, ineffective: map[string]error{}}
	err = one.whileRuns(ctx, func(ctx context.Context) error { return r.install(ctx, started) })
	if !one.refused(ctx, err, nil) && err != nil {
		return nil, errors.Join(err, r.closeTarget(ctx, started, err))
	}
	r.noteReady(g, started.Info(), began)
	return one, nil
}

// endRefused ends the scenarios of a group as inconclusive if an error, because of which its server cannot be
// used, is a refusal by a webhook or policy of another client. It reports whether it is one.
func (r *run) endRefused(ctx context.Context, g group, err error) bool {
	foreign := (*execution.ForeignError)(nil)
	if !errors.As(execution.OfForeign(ctx, nil, err, nil), &foreign) {
		return false
	}
	for _, s := range scenario.Cases(g.scenarios) {
		if reason, skipped := g.skip[s.Metadata.Name]; skipped {
			r.decided(s, framework.Skipped, reason)
		} else {
			r.finish(s, foreign.Outcome())
		}
	}
	return true
}

// runGroup runs the scenarios of the group.
func (r *groupRun) runGroup(ctx context.Context) error {
	if r == nil {
		return nil
	}
	ready := time.Now()
	err := r.whileRuns(ctx, func(ctx context.Context) error {
		if len(r.left) > 0 {
			if err := r.uninstall(ctx, r.left); err != nil {
				return err
			}
		}
		return r.waves(ctx, r.group)
	})
	if r.group.profile == nil {
		r.timing.Catalogue += time.Since(ready).Seconds()
	}
	return err
}

// close ends the server. Cause is why the run ended, or nil.
func (r *groupRun) close(ctx context.Context, cause error) error {
	if r == nil {
		return nil
	}
	err := r.closeTarget(ctx, r.target, cause)
	r.noteStrangers(r.target)
	return err
}

// noteReady notes for the report the target of a group, which was started at a time: the default
// server, or the first of the others.
func (r *run) noteReady(g group, info framework.TargetInfo, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.profile == nil || r.info.Kind == "" {
		r.info, r.timing.TargetReady = info, time.Since(began).Seconds()
	}
}

// closeTarget removes what the run created, and ends the target. Cause is why the run ended, or nil.
func (r *run) closeTarget(ctx context.Context, used target.Target, cause error) error {
	r.options.Progress.Stage("removing what the run created")
	limit := closeLimit
	if errors.Is(cause, target.ErrGone) {
		limit = goneLimit
	}
	ctx, cancel := processes.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return used.Close(ctx)
}

// noteStrangers notes for the report what other clients did to a target.
func (r *run) noteStrangers(target target.Target) {
	of := strangers(target)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers.Requests += of.Requests
}

// decideBeforeStart returns a group without the scenarios whose outcome is known without
// a server, and notes their outcomes: those that are skipped, and those that need a later
// version. The default server is always started, because the report describes the target.
func (r *run) decideBeforeStart(g group) group {
	if g.profile == nil {
		return g
	}
	g.scenarios = scenario.Keep(g.scenarios, func(s scenario.Scenario) bool {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			return r.decided(s, framework.Skipped, reason)
		}
		reason := ""
		if r.version != "" { // known before the start
			reason = OtherMinor(s, r.version)
		}
		return reason == "" || r.decided(s, framework.Unsupported, reason)
	})
	return g
}
