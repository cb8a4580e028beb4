package conformance_test

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// Each scenario of the catalogue passes on an API server that records the calls of its plugins, as it does on one that
// does not, which `make conformance` runs. What did not pass runs again: a busy machine can make a scenario inconclusive.
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
	total, failed := len(chosen), []report.Outcome(nil)
	for range 2 {
		got, err := plan.Run(t.Context(), chosen, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(got.Target.Capabilities, framework.CapabilityObservedPlugins) {
			t.Fatalf("the server does not record calls; its capabilities are %q", got.Target.Capabilities)
		}
		failed = slices.DeleteFunc(got.Outcomes, func(o report.Outcome) bool { return o.Verdict == framework.Pass })
		chosen = slices.DeleteFunc(chosen, func(s scenario.Scenario) bool {
			return !slices.ContainsFunc(failed, func(o report.Outcome) bool { return o.Name == s.Metadata.Name })
		})
		if len(failed) == 0 {
			break
		}
	}
	for _, outcome := range failed {
		t.Errorf("%s %s: %s", outcome.Verdict, outcome.Name, outcome.Reason)
	}
	if total < 400 {
		t.Errorf("%d scenarios ran: this test proves little", total)
	}
}
