package providers

import (
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/scenarios"
)

// A misspelt kind is an error before an API server of the default version starts.
func TestMisspeltKinds(t *testing.T) {
	t.Parallel()
	manifest := func(apiVersion, kind string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind}
	}
	definition := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
		"versions": []any{map[string]any{"name": "v1", "served": true}},
	}}
	all := []scenario.Scenario{
		{File: "crd.yaml", Spec: scenario.Spec{Given: []map[string]any{definition}}},
		{File: "good.yaml", Spec: scenario.Spec{
			Given: []map[string]any{manifest("v1", "ConfigMap"), manifest("example.com/v1", "Widget"), manifest("other.example.com/v1", "Wdget")},
			When:  []scenario.Step{{Create: manifest("v2", "ConfigMap")}, {Create: manifest("apps/v1", "Sandwich")}},
		}},
		{File: "given.yaml", Spec: scenario.Spec{Given: []map[string]any{manifest("v1", "ConfigMapp")}}},
		{File: "step.yaml", Spec: scenario.Spec{When: []scenario.Step{{Parallel: []scenario.Step{{Create: manifest("example.com/v1", "Wdget")}}}}}},
		{File: "hook.yaml", Spec: scenario.Spec{Hooks: map[string]scenario.Hook{"a": {Reply: scenario.Reply{
			Meanwhile: []scenario.Step{{Wait: &scenario.Wait{ObjectReference: scenario.ObjectReference{APIVersion: "v1", Kind: "Secrt"}}}},
		}}}}},
	}
	err := NewEnvtest(EnvtestOptions{}).Check(t.Context(), all)
	if problems := scenario.Errors(err); len(problems) != 3 || problems[0].File != "given.yaml" || problems[1].File != "step.yaml" || problems[2].File != "hook.yaml" ||
		!strings.Contains(err.Error(), `there is no kind ConfigMapp in v1; did you mean "ConfigMap"?`) {
		t.Errorf("got %v; want errors for given.yaml, step.yaml and hook.yaml", err)
	}
	other := EnvtestOptions{Assets: binaries.Options{Version: "1.35.0"}}
	if err := NewEnvtest(other).Check(t.Context(), all); err != nil {
		t.Errorf("another version, which can have other kinds: %v", err)
	}
	catalogue, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	catalogue = slices.DeleteFunc(catalogue, func(s scenario.Scenario) bool { return s.Spec.Server != nil })
	if err := NewEnvtest(EnvtestOptions{}).Check(t.Context(), catalogue); err != nil {
		t.Errorf("the catalogue: %v", err)
	}
}
