package conformance_test

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// fewestObserved is how many scenarios must pass: more than that pass on a server that does not record calls.
const fewestObserved = 500

// The scenarios of the catalogue pass on an API server that records the calls of its plugins, as they do on one that does
// not, which `make conformance` runs.
func TestCatalogueOnObservedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the whole catalogue")
	}
	plan, err := conformance.Options{Target: conformance.Target{ObservePlugins: true}}.Plan(nil, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	// These make the engine record the calls.
	chosen := slices.DeleteFunc(plan.Scenarios, scenario.Scenario.ObservesPlugins)
	got, err := plan.Run(t.Context(), chosen, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Target.Capabilities, framework.CapabilityObservedPlugins) {
		t.Fatalf("the server does not record calls; its capabilities are %q", got.Target.Capabilities)
	}
	passed := 0
	for _, outcome := range got.Outcomes {
		switch outcome.Verdict {
		case framework.Pass:
			passed++
		case framework.Unsupported: // of another minor version, or with controllers
		default:
			t.Errorf("%s %s: %s", outcome.Verdict, outcome.Name, outcome.Reason)
		}
	}
	if passed < fewestObserved {
		t.Errorf("%d of %d scenarios pass, want %d at least", passed, len(chosen), fewestObserved)
	}
}
