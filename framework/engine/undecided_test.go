package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/report"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// oldServers is a Provider of one version that starts nothing, and counts.
type oldServers struct {
	version string
	started int
}

var errNotStarted = errors.New("nothing is started here")

func (o *oldServers) Start(context.Context, *scenario.Server) (Target, error) {
	o.started++
	return nil, errNotStarted
}

func (o *oldServers) Version(context.Context) (string, error) { return o.version, nil }

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

func TestNoServerForWhatIsDecided(t *testing.T) {
	t.Parallel()
	provider := &oldServers{version: "v1.35.4"}
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

func TestServerForWhatIsNotDecided(t *testing.T) {
	t.Parallel()
	provider := &oldServers{version: "v1.36.0"}
	_, err := Run(t.Context(), Options{Provider: provider, Scenarios: []scenario.Scenario{profiled("a.later")}})
	if !errors.Is(err, errNotStarted) || provider.started != 1 {
		t.Errorf("got %v and %d servers started; want one, which fails", err, provider.started)
	}
}
