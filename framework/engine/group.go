package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"golang.org/x/sync/errgroup"
)

// group is the scenarios of one server profile.
type group struct {
	profile   *scenario.Server
	key       string
	scenarios []scenario.Scenario
	skip      map[string]string
}

// what names the group in progress lines.
func (g group) what() string {
	if g.profile == nil {
		return ""
	}
	return " with a profile of its own for " + g.scenarios[0].Metadata.Name
}

// serversAtOnce bounds the API servers with a profile of their own that run at
// the same time.
const serversAtOnce = 3

// groups runs the scenarios of every server. Groups with a profile of their own
// are small, and mostly wait for their servers to start and to stop: they run
// beside one another while the default server starts, whose scenarios begin once
// these are done and have the machine to themselves.
func (r *run) groups(ctx context.Context, all []group) error {
	var byDefault group
	if len(all) > 0 && all[0].profile == nil {
		byDefault, all = all[0], all[1:]
		if err := r.check(ctx, byDefault); err != nil {
			return err
		}
	}
	// Once for all of them, for this can mean to build the API server, and to fail.
	if provider, ok := r.options.Provider.(Versioned); ok {
		var err error
		if r.version, err = provider.Version(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(all))
	r.acting.Add(len(all))
	var beside sync.WaitGroup
	beside.Go(func() {
		var servers errgroup.Group
		servers.SetLimit(serversAtOnce)
		for i, g := range all {
			servers.Go(func() error {
				errs[i] = r.group(ctx, g)
				return nil
			})
		}
		_ = servers.Wait() // each error is in errs
	})
	if err := r.group(ctx, byDefault); err != nil {
		cancel() // where the default server does not start, neither do the others
		beside.Wait()
		return err
	}
	beside.Wait()
	return errors.Join(errs...)
}

// groupRun is the run of one group.
type groupRun struct {
	*run
	target Target
	// again are scenarios to repeat: see crowdedOut. met means that another run was at
	// work when this one began.
	again []scenario.Scenario
	met   bool
}

// group runs the scenarios of one server profile; those of the default server once
// the others are through.
func (r *run) group(ctx context.Context, g group) error {
	through := func() {}
	if g.profile != nil {
		through = sync.OnceFunc(r.acting.Done)
	}
	defer through()
	if g = r.undecided(g); len(g.scenarios) == 0 {
		return nil
	}
	began := time.Now()
	r.options.Progress.Stage("starting the API server" + g.what())
	target, err := r.start(ctx, g.profile)
	if errors.Is(err, ErrNoProfiles) {
		for _, s := range g.scenarios {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: err.Error()})
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	if g.profile == nil {
		r.timing.TargetReady = time.Since(began).Seconds()
	}
	if g.profile == nil || r.info.Kind == "" {
		r.info = target.Info()
	}
	r.mu.Unlock()
	if g.profile == nil {
		r.acting.Wait()
	}
	ready := time.Now()
	err = (&groupRun{run: r, target: target}).waves(ctx, g)
	through() // its server has yet to stop, which takes no time of anybody's
	r.options.Progress.Stage("removing what the run created")
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if closeErr := target.Close(closeCtx); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("remove what the run created: %w", closeErr))
	}
	if g.profile == nil {
		r.timing.Catalogue = time.Since(ready).Seconds()
	}
	return err
}

// undecided returns a group without the scenarios that need no server to tell
// their outcome, and notes it: those that are skipped, and those that hold only
// since a later version. The default server is started for these too, since a
// report says what the target is.
func (r *run) undecided(g group) group {
	if g.profile == nil {
		return g
	}
	info := framework.TargetInfo{ServerVersion: r.version}
	g.scenarios = slices.DeleteFunc(slices.Clone(g.scenarios), func(s scenario.Scenario) bool {
		if reason, ok := g.skip[s.Metadata.Name]; ok {
			r.finish(s, report.Outcome{Verdict: framework.Skipped, Reason: reason})
			return true
		}
		reason := tooOld(s, info)
		if reason != "" {
			r.finish(s, report.Outcome{Verdict: framework.Unsupported, Reason: reason})
		}
		return reason != ""
	})
	return g
}

// groups sorts scenarios by the server they need: the default first.
func groups(scenarios []scenario.Scenario, skip map[string]string) []group {
	byKey := map[string]*group{}
	for _, s := range scenarios {
		key := ""
		if s.Spec.Server != nil {
			data, _ := json.Marshal(s.Spec.Server) // maps are marshalled in the order of their keys
			key = string(data)
		}
		if byKey[key] == nil {
			byKey[key] = &group{profile: s.Spec.Server, key: key, skip: skip}
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

// wavesOf divides what one server runs. Those who ask to be alone come first:
// together where none of them installs what decides about requests, or else one
// at a time. Then as many at once as give no different objects of one name.
func wavesOf(cases []*scenarioCase) [][]*scenarioCase {
	var quiet []*scenarioCase
	var alone, waves [][]*scenarioCase
	var names []map[string]map[string]any
	for _, c := range cases {
		if c.scenario.Spec.Alone {
			if c.decides() {
				alone = append(alone, []*scenarioCase{c})
			} else {
				quiet = append(quiet, c)
			}
			continue
		}
		given := sharedNames(c)
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
	if len(quiet) > 0 {
		alone = append([][]*scenarioCase{quiet}, alone...)
	}
	return append(alone, waves...)
}

// decides reports whether the scenario installs what decides about requests.
func (c *scenarioCase) decides() bool {
	installed := c.given
	for _, step := range c.scenario.Spec.When {
		installed = append(slices.Clone(installed), step.Install...)
	}
	return slices.ContainsFunc(installed, isAdmission)
}

// sharedNames returns the given objects whose name is not the scenario's alone.
func sharedNames(c *scenarioCase) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, manifest := range c.given {
		metadata, _ := manifest["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		if strings.Contains(name, c.id) || strings.Contains(namespace, c.id) {
			continue
		}
		if apiVersion, _ := manifest["apiVersion"].(string); strings.HasPrefix(apiVersion, "admissionregistration.k8s.io/") {
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
