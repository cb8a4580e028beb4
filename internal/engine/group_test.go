package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
)

// countingProvider is a Provider of one version that starts nothing, and counts.
type countingProvider struct {
	version string
	started int
}

var errNotStarted = errors.New("this provider starts nothing")

func (o *countingProvider) Start(context.Context, target.StartOptions) (target.Target, error) {
	o.started++
	return nil, errNotStarted
}

func (*countingProvider) Check(context.Context) error { return nil }

func (o *countingProvider) Version(context.Context) (string, error) { return o.version, nil }

func profiled(name string) scenario.Scenario {
	return scenario.Scenario{
		Metadata: scenario.Metadata{Name: name},
		Spec: scenario.Spec{
			Level: framework.Should, Since: "1.36",
			Server: &scenario.Server{FeatureGates: map[string]bool{"Later": true}},
		},
	}
}

func verdicts(out report.Report) map[string]framework.Verdict {
	got := map[string]framework.Verdict{}
	for _, outcome := range out.Outcomes {
		got[outcome.Name] = outcome.Verdict
	}
	return got
}

func TestNoServerIfDecided(t *testing.T) {
	t.Parallel()
	provider := &countingProvider{version: "v1.35.4"}
	out, err := Run(t.Context(), Options{
		Provider:  provider,
		Scenarios: []scenario.Scenario{profiled("a.later"), profiled("a.skipped")},
		Skip:      map[string]string{"a.skipped": "not today"},
	})
	if err != nil || provider.started != 0 {
		t.Errorf("got %v and %d servers started; want neither", err, provider.started)
	}
	if got := verdicts(out); got["a.later"] != framework.Unsupported || got["a.skipped"] != framework.Skipped {
		t.Errorf("got %v; want a.later unsupported and a.skipped skipped", got)
	}
}

func TestServerIfNotDecided(t *testing.T) {
	t.Parallel()
	provider := &countingProvider{version: "v1.36.0"}
	_, err := Run(t.Context(), Options{Provider: provider, Scenarios: []scenario.Scenario{profiled("a.later")}})
	if !errors.Is(err, errNotStarted) || provider.started != 1 {
		t.Errorf("got %v and %d servers started; want one that fails", err, provider.started)
	}
}

// askedProvider is a Provider that starts nothing, and notes which servers are to record the calls of plugins.
type askedProvider struct {
	countingProvider
	mu    sync.Mutex
	asked map[bool]bool // whether to record, by whether the server has a profile
}

func (p *askedProvider) Start(_ context.Context, options target.StartOptions) (target.Target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[options.Profile != nil] = options.ObservePlugins
	return nil, target.ErrNoProfiles
}

// Only the servers of scenarios that expect calls of plugins record them, unless all are to.
func TestServersThatObservePlugins(t *testing.T) {
	t.Parallel()
	expects, skipped := profiled("a.expects"), scenario.Scenario{Metadata: scenario.Metadata{Name: "a.skipped"}}
	expects.Spec.When = []scenario.Step{{Then: &scenario.Expectation{Plugins: &scenario.Plugins{}}}}
	skipped.Spec.When = expects.Spec.When
	for all, want := range map[bool]map[bool]bool{false: {false: false, true: true}, true: {false: true, true: true}} {
		t.Run(fmt.Sprintf("ObservePlugins %t", all), func(t *testing.T) {
			provider := &askedProvider{countingProvider: countingProvider{version: "v1.36.0"}, asked: map[bool]bool{}}
			_, _ = Run(t.Context(), Options{
				Provider: provider, ObservePlugins: all, Skip: map[string]string{"a.skipped": "not today"},
				Scenarios: []scenario.Scenario{{Metadata: scenario.Metadata{Name: "a.default"}}, expects, skipped},
			})
			if !maps.Equal(provider.asked, want) {
				t.Errorf("ObservePlugins %t: by profile, got %v; want %v", all, provider.asked, want)
			}
		})
	}
}

// ordering is a Provider that notes in which order servers start and end. Servers with a profile start
// together.
type ordering struct {
	// unversioned is the error of Version, defaultErr that of the default server.
	unversioned, defaultErr error
	// noProfiles is true if the Provider starts no server with a profile.
	noProfiles bool
	together   sync.WaitGroup
	mu         sync.Mutex
	events     []string
}

func (*ordering) Check(context.Context) error { return nil }

func (o *ordering) Version(context.Context) (string, error) { return "v1.36.3", o.unversioned }

// Stage and Done make an ordering a Progress.
func (*ordering) Stage(string) {}

func (o *ordering) Done(outcome report.Outcome) {
	o.note(fmt.Sprint(outcome.Name, " ", outcome.Verdict))
}

func (o *ordering) note(event string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, event)
}

func (o *ordering) Start(_ context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile == nil {
		o.note("start")
		return orderedTarget{countingTarget: &countingTarget{}, note: o.note}, o.defaultErr
	}
	if o.noProfiles {
		return nil, target.ErrNoProfiles
	}
	o.note("start with a profile")
	o.together.Done()
	o.together.Wait()
	return nil, target.ErrNoProfiles
}

type orderedTarget struct {
	*countingTarget
	note func(string)
}

func (t orderedTarget) NewSandbox(_ context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	t.note("sandbox " + options.ID[len(options.ID)-1:])
	return countingSandbox{target: t.countingTarget}, nil
}

func (t orderedTarget) Close(context.Context) error {
	t.note("close")
	return nil
}

// each returns scenarios for n servers, the default one included.
func each(n int) []scenario.Scenario {
	all := []scenario.Scenario{{Metadata: scenario.Metadata{Name: "a.default"}}}
	for i := range n - 1 {
		s := profiled(fmt.Sprintf("a.profile-%d", i))
		s.Spec.Server = &scenario.Server{FeatureGates: map[string]bool{s.Metadata.Name: true}}
		all = append(all, s)
	}
	return all
}

// The scenarios of the default server come first. Then the other servers start together.
func TestDefaultServerFirst(t *testing.T) {
	t.Parallel()
	provider := &ordering{}
	provider.together.Add(parallelServers)
	_, err := Run(t.Context(), Options{Provider: provider, Progress: provider, Scenarios: each(parallelServers + 1)})
	if want := []string{"start", "sandbox 1", "a.default pass", "start with a profile"}; err != nil || !slices.Equal(provider.events[:4], want) {
		t.Errorf("Run = %v, %q; want that it begins with %q", err, provider.events, want)
	}
}

// If the default server does not start, or a scenario on it ends the run, no other server starts.
func TestOnlyTheDefaultServer(t *testing.T) {
	t.Parallel()
	provider := &ordering{defaultErr: errNotStarted}
	out, err := Run(t.Context(), Options{Provider: provider, Scenarios: each(3)})
	if err == nil || err.Error() != errNotStarted.Error() || len(provider.events) != 1 {
		t.Errorf("Run = %v, %q; want only that the default server did not start", err, provider.events)
	}
	for name, verdict := range verdicts(out) {
		if verdict != framework.Errored {
			t.Errorf("%s: %s; want errored", name, verdict)
		}
	}
	provider = &ordering{}
	ctx, cancel := context.WithCancelCause(t.Context())
	out, err = Run(ctx, Options{Provider: provider, Scenarios: each(3), Progress: endsFirst{provider, cancel}})
	if !errors.Is(err, ErrFailFast) || slices.Contains(provider.events, "start with a profile") {
		t.Errorf("Run = %v, %q; want the end after the first scenario", err, provider.events)
	}
	want := map[string]framework.Verdict{"a.default": framework.Pass, "a.profile-0": framework.Skipped, "a.profile-1": framework.Skipped}
	if got := verdicts(out); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// endsFirst ends a run with its first scenario.
type endsFirst struct {
	*ordering
	end context.CancelCauseFunc
}

func (e endsFirst) Done(report.Outcome) { e.end(ErrFailFast) }

// Scenarios without isolation that do not get their own server run last on the default server, with their
// own IDs, after what the others installed was removed.
func TestWithoutOwnServer(t *testing.T) {
	t.Parallel()
	open := scenario.Scenario{Metadata: scenario.Metadata{Name: "a.open"}, Spec: scenario.Spec{Isolation: scenario.IsolationNone}}
	provider := &ordering{noProfiles: true}
	_, err := Run(t.Context(), Options{Provider: provider, Progress: provider, Scenarios: append(each(1), open)})
	if want := []string{"start", "sandbox 1", "a.default pass", "sandbox 2", "a.open pass", "close"}; err != nil || !slices.Equal(provider.events, want) {
		t.Errorf("Run = %v, %q; want %q", err, provider.events, want)
	}
	provider = &ordering{noProfiles: true}
	_, err = Run(t.Context(), Options{Provider: provider, Progress: provider, Scenarios: []scenario.Scenario{open}})
	if want := []string{"start", "sandbox 1", "a.open pass", "close"}; err != nil || !slices.Equal(provider.events, want) {
		t.Errorf("alone: Run = %v, %q; want %q", err, provider.events, want)
	}
}

func TestNoServerWithoutBinaries(t *testing.T) {
	t.Parallel()
	provider := &ordering{unversioned: errors.New("no binaries")}
	if _, err := Run(t.Context(), Options{Provider: provider, Scenarios: each(3)}); !errors.Is(err, provider.unversioned) || len(provider.events) != 0 {
		t.Errorf("Run = %v, %q; want %v and no server", err, provider.events, provider.unversioned)
	}
}

// A scenario that changes the files of its server has it for itself.
func TestGroupsOfChangedFiles(t *testing.T) {
	one := func(name string, steps ...scenario.Step) scenario.Scenario {
		return scenario.Scenario{
			Metadata: scenario.Metadata{Name: name},
			Spec:     scenario.Spec{Server: &scenario.Server{Files: map[string]string{"a": "b"}}, When: steps},
		}
	}
	changes := scenario.Step{Files: &scenario.Files{Remove: []string{"a"}}}
	var got [][]string
	for _, g := range groupScenarios([]scenario.Scenario{one("a"), one("b", changes), one("c"), one("d", changes)}, nil, lanes{}) {
		var names []string
		for _, s := range g.scenarios {
			names = append(names, s.Metadata.Name)
		}
		got = append(got, names)
	}
	if want := [][]string{{"a", "c"}, {"b"}, {"d"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got servers for %q; want %q", got, want)
	}
}

// Scenarios that run alone share API servers if there are many. With a webhook under test they are on the default one.
func TestGroupsOfScenariosAlone(t *testing.T) {
	t.Parallel()
	one := func(n int) scenario.Scenario {
		return scenario.Scenario{Metadata: scenario.Metadata{Name: fmt.Sprint("a.", n)}, Spec: scenario.Spec{Exclusive: true}}
	}
	var all []scenario.Scenario
	for n := range fewAlone - 1 {
		all = append(all, one(n))
	}
	if few := groupScenarios(all, nil, lanes{}); len(few) != 1 || few[0].profile != nil || !few[0].scenarios[0].Alone {
		t.Errorf("a few: got %d servers, want the default one", len(few))
	}
	tested := one(fewAlone)
	tested.Spec.Given = []map[string]any{{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "a"},
		"webhooks": []any{map[string]any{"name": "a.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": "guard", "name": "guard"}}}},
	}}
	all = append(all, one(fewAlone-1), tested)
	var got []int
	for _, g := range groupScenarios(all, nil, lanes{}) {
		got = append(got, len(g.scenarios))
	}
	if want := []int{1, fewAlone / ownServers, fewAlone / ownServers}; !slices.Equal(got, want) {
		t.Errorf("many: got servers with %v scenarios, want %v", got, want)
	}
}
