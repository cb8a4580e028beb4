package engine

import (
	"slices"
	"testing"
)

// An effective policy could refuse what is installed after it, so bindings come last.
func TestArrangeOrder(t *testing.T) {
	t.Parallel()
	of := func(group, kind string) map[string]any { return map[string]any{"apiVersion": group, "kind": kind} }
	const admission = "admissionregistration.k8s.io/v1"
	sandbox := &fakeSandbox{}
	c := caseOn(sandbox)
	c.given = []map[string]any{
		of(admission, "ValidatingAdmissionPolicy"), of(admission, "ValidatingAdmissionPolicyBinding"),
		of(admission, "MutatingWebhookConfiguration"), of("rbac.authorization.k8s.io/v1", "RoleBinding"),
	}
	if err := c.arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"RoleBinding", "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"}
	if !slices.Equal(sandbox.installed, want) {
		t.Errorf("installed %v; want %v", sandbox.installed, want)
	}
}
