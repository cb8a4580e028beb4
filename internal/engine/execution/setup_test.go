package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// policyTest returns a PolicyTest with a case for each step. All manifests exist only for its requests.
func policyTest(given []map[string]any, steps map[string]scenario.Step) scenario.Scenario {
	s := scenario.Scenario{Spec: scenario.Spec{Given: given}, Existing: len(given)}
	for name, step := range steps {
		s.Cases = append(s.Cases, scenario.Case{Name: name, When: []scenario.Step{step}})
	}
	return s
}

// What is arranged is for all cases, unless they are removed. Each case has its own state.
func TestCasesOfASetup(t *testing.T) {
	t.Parallel()
	create := func(name string) scenario.Step {
		return scenario.Step{As: &framework.User{Name: "jane"}, Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	setup, err := New(policyTest(nil, map[string]scenario.Step{"a": create("x"), "b": create("y")}), targettest.Target{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := func(c *Case) (requested, granted []string) {
		_, requests := c.Requests()
		for _, request := range requests {
			requested = append(requested, request.Name)
		}
		for _, request := range c.granted() {
			granted = append(granted, request.Name)
		}
		return requested, granted
	}
	check := func(c *Case, want ...string) {
		t.Helper()
		requested, granted := names(c)
		if diff := cmp.Diff([][]string{want, want}, [][]string{requested, granted}); diff != "" {
			t.Errorf("requests and rights (-want +got):\n%s", diff)
		}
	}
	check(setup.Case, "x", "y")
	check(setup.Cases[0], "x")
	check(setup.Cases[1], "y")
	first, second := setup.Cases[0], setup.Cases[1]
	if first.ID != second.ID || first.shared == second.shared {
		t.Errorf("the cases have the IDs %s and %s, and share their state: %t", first.ID, second.ID, first.shared == second.shared)
	}
	setup.Keep(func(c *Case) bool { return c != first })
	check(setup.Case, "y")
}
