package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
)

// manyScenarios is how many scenarios TestManyScenarios runs on one server.
const manyScenarios = 3000

// many returns scenarios whose numbers are in the list. The numbers around 100 and
// 1000 have a webhook that decides about cluster-scoped objects: in 100 to 109 it denies,
// in 1000 to 1099 it allows and must be the only one that is called.
func many() []scenario.Scenario {
	all := make([]scenario.Scenario, 0, manyScenarios)
	for number := 1; number <= manyScenarios; number++ {
		s := scenario.Scenario{Metadata: scenario.Metadata{Name: fmt.Sprintf("many.n%05d", number)}, Area: "many"}
		s.Spec.Level = framework.Must
		class := map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": int64(1),
			"metadata": map[string]any{"name": "$(id)-class"},
		}
		configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "subject"}}
		step := scenario.Step{Create: configMap, DryRun: true, Then: expectation(true)}
		denies, allows := number >= 100 && number < 110, number >= 1000 && number < 1100
		if denies || allows {
			s.Spec.Given = []map[string]any{{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "a"},
				"webhooks": []any{map[string]any{"name": "a.example.com", "rules": []any{map[string]any{
					"operations": []any{"CREATE"}, "apiGroups": []any{"scheduling.k8s.io"}, "apiVersions": []any{"v1"}, "resources": []any{"priorityclasses"},
				}}}},
			}}
			var reply scenario.Reply
			reply.Allowed = &allows
			s.Spec.Hooks = map[string]scenario.Hook{"a.example.com": {Reply: reply}}
			step = scenario.Step{Create: class, DryRun: true, Then: expectation(allows)}
			step.Then.Calls = &scenario.Calls{InOrder: []scenario.Call{{Webhook: "a.example.com"}}}
		}
		s.Spec.When = []scenario.Step{step}
		all = append(all, s)
	}
	return all
}

func expectation(allowed bool) *scenario.Expectation { return &scenario.Expectation{Allowed: &allowed} }

// In a run of thousands of scenarios, no webhook decides about a request of another
// scenario.
func TestManyScenarios(t *testing.T) {
	all := many()
	got, err := engine.Run(t.Context(), engine.Options{Scenarios: all, Provider: providers.NewEnvtest(providers.EnvtestOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	if got.Summary.Pass != manyScenarios {
		i := slices.IndexFunc(got.Outcomes, func(o report.Outcome) bool { return o.Verdict != framework.Pass })
		t.Errorf("%+v, want %d passed; the first that did not: %+v", got.Summary, manyScenarios, got.Outcomes[i])
	}
}
