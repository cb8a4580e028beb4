package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// Each scenario of the catalogue has the same verdict on an API server that records the calls of
// its plugins as on one that does not. Scenarios whose verdicts differ run again on both: a busy
// machine can make one inconclusive.
func TestCatalogueOnObservedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the whole catalogue twice")
	}
	var only map[string]string // the scenarios to run; nil means all
	verdicts := func(observe bool) (map[string]framework.Verdict, report.Report) {
		plan, err := conformance.Options{Target: conformance.Target{ObservePlugins: observe}}.Plan(nil, func(line string) { t.Log(line) })
		if err != nil {
			t.Fatal(err)
		}
		// These make the engine record the calls.
		chosen := slices.DeleteFunc(plan.Scenarios, func(s scenario.Scenario) bool {
			_, wanted := only[s.Metadata.Name]
			return s.ObservesPlugins() || only != nil && !wanted
		})
		got, err := plan.Run(t.Context(), chosen, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.Contains(got.Target.Capabilities, framework.CapabilityObservedPlugins); has != observe {
			t.Fatalf("the server records calls: %t, want %t; its capabilities are %q", has, observe, got.Target.Capabilities)
		}
		found := map[string]framework.Verdict{}
		for _, outcome := range got.Outcomes {
			found[outcome.Name] = outcome.Verdict
		}
		return found, got
	}
	plain, _ := verdicts(false)
	observed, details := verdicts(true)
	if only = differences(plain, observed); len(only) > 0 {
		t.Logf("these run again: %q", only)
		plain, _ = verdicts(false)
		observed, details = verdicts(true)
	}
	for _, problem := range differences(plain, observed) {
		t.Error(problem)
	}
	if t.Failed() {
		for _, outcome := range details.Outcomes {
			if outcome.Verdict != framework.Pass {
				t.Logf("%s %s: %s", outcome.Verdict, outcome.Name, outcome.Reason)
			}
		}
	}
	if found := differences(plain, map[string]framework.Verdict{"x": framework.Pass}); len(found) != len(plain)+1 {
		t.Errorf("differences to another catalogue: %d, want %d, or this test proves nothing", len(found), len(plain)+1)
	}
}

// differences returns how verdicts differ, by the name of the scenario.
func differences(plain, observed map[string]framework.Verdict) map[string]string {
	found := map[string]string{}
	for name, want := range plain {
		if got := observed[name]; got != want {
			found[name] = fmt.Sprintf("%s: %q on the observed server, %q on a plain one", name, got, want)
		}
	}
	for name := range observed {
		if plain[name] == "" {
			found[name] = name + ": only on the observed server"
		}
	}
	return found
}
