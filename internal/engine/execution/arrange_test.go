package execution

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// An effective policy could refuse what is installed after it, so bindings come last.
func TestArrangeOrder(t *testing.T) {
	t.Parallel()
	of := func(group, kind string) map[string]any { return map[string]any{"apiVersion": group, "kind": kind} }
	const admission = "admissionregistration.k8s.io/v1"
	sandbox := &fakeSandbox{}
	c := caseOn(sandbox)
	c.Given = []map[string]any{
		of(admission, "ValidatingAdmissionPolicy"), of(admission, "ValidatingAdmissionPolicyBinding"),
		of(admission, "MutatingWebhookConfiguration"), of("rbac.authorization.k8s.io/v1", "RoleBinding"),
	}
	if err := c.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"RoleBinding", "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"}
	if !slices.Equal(sandbox.installed, want) {
		t.Errorf("installed %v; want %v", sandbox.installed, want)
	}
}

// A namespace gets its ServiceAccount if a scenario names Pods or ServiceAccounts anywhere.
func TestNoAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Case{
		"request":      {Scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{Subresource: "binding", Parent: &scenario.ObjectReference{Kind: "Pod"}}}}}},
		"given":        {Given: []map[string]any{{"kind": "ServiceAccount"}}},
		"token":        {Given: []map[string]any{{"kind": "TokenRequest"}}},
		"resource":     {Given: []map[string]any{{"resources": []any{"pods"}}}},
		"installation": {Scenario: scenario.Scenario{Installation: "a"}},
	} {
		if c.noAccounts() {
			t.Errorf("%s: no ServiceAccount", name)
		}
	}
	if !(&Case{Given: []map[string]any{{"kind": "ConfigMap"}}}).noAccounts() {
		t.Error("a scenario with a ConfigMap gets a ServiceAccount")
	}
}
