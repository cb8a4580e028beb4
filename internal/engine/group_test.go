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

func (*countingProvider) Check(context.Context, []scenario.Scenario) error { return nil }

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
		provider := &askedProvider{countingProvider: countingProvider{version: "v1.36.0"}, asked: map[bool]bool{}}
		_, _ = Run(t.Context(), Options{
			Provider: provider, ObservePlugins: all, Skip: map[string]string{"a.skipped": "not today"},
			Scenarios: []scenario.Scenario{{Metadata: scenario.Metadata{Name: "a.default"}}, expects, skipped},
		})
		if !maps.Equal(provider.asked, want) {
			t.Errorf("ObservePlugins %t: by profile, got %v; want %v", all, provider.asked, want)
		}
	}
}

// failing is a Provider whose default server fails to start after all others have begun
// to start.
type failing struct {
	others sync.WaitGroup
	// unversioned is the error of Version.
	unversioned error
	mu          sync.Mutex
	started     int
}

func (*failing) Check(context.Context, []scenario.Scenario) error { return nil }

func (f *failing) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	f.mu.Lock()
	f.started++
	f.mu.Unlock()
	if options.Profile == nil {
		f.others.Wait()
		return nil, errNotStarted
	}
	f.others.Done()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (f *failing) Version(context.Context) (string, error) { return "v1.36.3", f.unversioned }

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

func TestServersStartTogether(t *testing.T) {
	t.Parallel()
	provider := &failing{}
	provider.others.Add(parallelServers)
	out, err := Run(t.Context(), Options{Provider: provider, Scenarios: each(parallelServers + 1)})
	if err == nil || err.Error() != errNotStarted.Error() {
		t.Errorf("Run = %v; want only that the default server did not start", err)
	}
	for name, verdict := range verdicts(out) {
		if verdict != framework.Errored {
			t.Errorf("%s: %s; want errored", name, verdict)
		}
	}
}

func TestNoServerWithoutBinaries(t *testing.T) {
	t.Parallel()
	provider := &failing{unversioned: errors.New("no binaries")}
	if _, err := Run(t.Context(), Options{Provider: provider, Scenarios: each(3)}); !errors.Is(err, provider.unversioned) || provider.started != 0 {
		t.Errorf("Run = %v, %d servers started; want %v and none", err, provider.started, provider.unversioned)
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
	for _, g := range groupScenarios([]scenario.Scenario{one("a"), one("b", changes), one("c"), one("d", changes)}, nil) {
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
