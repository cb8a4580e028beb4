package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// group is the scenarios of one server profile. A nil profile is the default server.
type group struct {
	profile *scenario.Server
	key     string
	// open is true for the group of one scenario without isolation and without a profile.
	open      bool
	scenarios []scenario.Scenario
	skip      map[string]string
}

// what describes the group in progress lines.
func (g group) what() string {
	switch {
	case g.profile == nil:
		return ""
	case g.open:
		return " for " + g.scenarios[0].Metadata.Name + " alone"
	}
	return " with custom flags for " + g.scenarios[0].Metadata.Name
}

// groupScenarios divides scenarios by the server that they need: the default server
// first. Each scenario without isolation needs its own, but those of one installation share it. So does
// each that changes files of its server.
func groupScenarios(scenarios []scenario.Scenario, skip map[string]string) []group {
	byKey := map[string]*group{}
	for _, s := range scenarios {
		key := ""
		if s.Spec.Server != nil {
			data, _ := json.Marshal(s.Spec.Server) // json sorts the keys of maps
			key = string(data)
		}
		profile, open := s.Spec.Server, s.Spec.Isolation == scenario.IsolationNone
		if open {
			key += " " + cmp.Or(s.Installation, s.Metadata.Name)
		}
		if s.ChangesFiles() {
			key += " " + s.Metadata.Name
		}
		if open && profile == nil {
			profile = &scenario.Server{}
		}
		if byKey[key] == nil {
			byKey[key] = &group{profile: profile, key: key, open: open && s.Spec.Server == nil, skip: skip}
		}
		byKey[key].scenarios = append(byKey[key].scenarios, s)
	}
	var out []group
	for _, g := range byKey {
		slices.SortFunc(g.scenarios, func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int { return strings.Compare(a.key, b.key) })
	return out
}

// parallelServers limits the number of API servers with a profile that run at the same
// time.
const parallelServers = 3

// groups runs the scenarios of every server. Groups with a profile are small and mostly
// wait for their servers to start and to stop, so they run at the same time, while the
// default server starts. The scenarios of the default server follow, so that they have
// the machine for themselves.
func (r *run) groups(ctx context.Context, all []group) error {
	var byDefault group
	if len(all) > 0 && all[0].profile == nil {
		byDefault, all = all[0], all[1:]
		if err := r.check(ctx, byDefault); err != nil {
			return err
		}
	}
	// Once for all groups: this can mean building the API server, and can fail.
	var err error
	if r.version, err = r.options.Provider.Version(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(all))
	r.acting.Add(len(all))
	var others sync.WaitGroup
	others.Go(func() {
		var servers errgroup.Group
		servers.SetLimit(parallelServers)
		for i, g := range all {
			servers.Go(func() error {
				errs[i] = r.group(ctx, g)
				return nil
			})
		}
		_ = servers.Wait() // the errors are in errs
	})
	if err := r.group(ctx, byDefault); err != nil {
		cancel() // if the default server does not start, the others do not start either
		others.Wait()
		return err
	}
	others.Wait()
	return errors.Join(errs...)
}

// groupRun is the run of one group.
type groupRun struct {
	*run
	target target.Target
	// plugins is set before the first wave.
	plugins plugins
	// toRepeat has the scenarios whose outcome says nothing. disturbance is why an exclusive scenario
	// could be disturbed when the wave began, or "". Both are guarded by run.mu.
	toRepeat    []repeated
	disturbance string
}

// observesPlugins reports whether a scenario of the group expects calls of admission plugins.
func (g group) observesPlugins() bool {
	return slices.ContainsFunc(g.scenarios, func(s scenario.Scenario) bool {
		_, skipped := g.skip[s.Metadata.Name]
		return !skipped && s.ObservesPlugins()
	})
}

// group runs the scenarios of one server profile.
func (r *run) group(ctx context.Context, g group) error {
	acted := func() {}
	if g.profile != nil {
		acted = sync.OnceFunc(r.acting.Done)
	}
	defer acted()
	g = r.decideBeforeStart(g)
	if g.profile == nil && len(g.scenarios) == 0 {
		g = r.withoutOwnServer(g)
	}
	if len(g.scenarios) == 0 {
		return nil
	}
	began := time.Now()
	r.options.Progress.Stage("starting the API server" + g.what())
	started, err := r.options.Provider.Start(ctx, target.StartOptions{Profile: g.profile, Endpoints: r.options.Endpoints, AllowForeign: r.options.AllowForeign, ObservePlugins: r.options.ObservePlugins || g.observesPlugins()})
	if errors.Is(err, target.ErrNoProfiles) && g.open {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noOwnServer = append(r.noOwnServer, g.scenarios...)
		return nil
	}
	if errors.Is(err, target.ErrNoProfiles) {
		for _, s := range g.scenarios {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: err.Error()})
		}
		return nil
	}
	if g.profile != nil && g.profile.Fails != "" {
		return r.judgeStart(ctx, g, started, err)
	}
	if err != nil {
		return err
	}
	if err := r.install(ctx, started); err != nil {
		return errors.Join(err, r.closeTarget(ctx, started, err))
	}
	r.mu.Lock()
	if g.profile == nil {
		r.timing.TargetReady = time.Since(began).Seconds()
	}
	if g.profile == nil || r.info.Kind == "" {
		r.info = started.Info()
	}
	r.mu.Unlock()
	if g.profile == nil {
		g = r.withoutOwnServer(g)
	}
	ready := time.Now()
	err = (&groupRun{run: r, target: started}).waves(ctx, g)
	acted() // stopping the server does not delay the default server
	err = errors.Join(err, r.closeTarget(ctx, started, err))
	r.countForeignRequests(started)
	if g.profile == nil {
		r.timing.Catalogue = time.Since(ready).Seconds()
	}
	return err
}

// withoutOwnServer waits until the groups with a profile have ended, and returns the group of the
// default server with the scenarios without isolation that did not get their own server.
func (r *run) withoutOwnServer(g group) group {
	r.acting.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	g.scenarios = append(slices.Clone(g.scenarios), r.noOwnServer...)
	r.noOwnServer = nil
	return g
}

// closeTarget removes what the run created, and ends the target. Cause is why the run ended, or nil.
func (r *run) closeTarget(ctx context.Context, target target.Target, cause error) error {
	r.options.Progress.Stage("removing what the run created")
	limit := closeLimit
	if errors.Is(cause, errGone) {
		limit = goneLimit
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return target.Close(ctx)
}

func (r *run) countForeignRequests(target target.Target) {
	if count := target.Optional().ForeignRequests; count != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.foreignRequests += count()
	}
}

// decideBeforeStart returns a group without the scenarios whose outcome is known without
// a server, and notes their outcomes: those that are skipped, and those that need a later
// version. The default server is always started, because the report describes the target.
func (r *run) decideBeforeStart(g group) group {
	if g.profile == nil {
		return g
	}
	g.scenarios = slices.DeleteFunc(slices.Clone(g.scenarios), func(s scenario.Scenario) bool {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			return true
		}
		if r.version == "" {
			return false // not known before the start
		}
		reason := tooOld(s, r.version)
		if reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
		}
		return reason != ""
	})
	return g
}
