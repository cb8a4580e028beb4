package object_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/internal/object"
)

func TestIsAdmission(t *testing.T) {
	for _, test := range []struct {
		apiVersion, kind  string
		admission, policy bool
	}{
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", true, false},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", true, true},
		{"policy/v1", "PodDisruptionBudgetPolicy", false, false},
		{"", "ValidatingAdmissionPolicy", false, false},
	} {
		t.Run(test.apiVersion+" "+test.kind, func(t *testing.T) {
			manifest := map[string]any{"apiVersion": test.apiVersion, "kind": test.kind}
			if admission, policy := object.IsAdmission(manifest), object.IsPolicy(manifest); admission != test.admission || policy != test.policy {
				t.Errorf("%s %s: IsAdmission = %t, IsPolicy = %t; want %t, %t", test.apiVersion, test.kind, admission, policy, test.admission, test.policy)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	for want, manifest := range map[string]map[string]any{
		"ConfigMap a":  {"kind": "ConfigMap", "metadata": map[string]any{"name": "a", "generateName": "b"}},
		"ConfigMap b-": {"kind": "ConfigMap", "metadata": map[string]any{"generateName": "b-"}},
		"ConfigMap":    {"kind": "ConfigMap"},
		"":             nil,
	} {
		t.Run(want, func(t *testing.T) {
			if got := object.Describe(manifest); got != want {
				t.Errorf("Describe(%v) = %q, want %q", manifest, got, want)
			}
		})
	}
}
