package engine

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

// The timeline has the audit annotations of policies too, whose keys begin with the policy.
func TestAuditEntries(t *testing.T) {
	t.Parallel()
	event := &framework.Audit{Annotations: map[string]string{
		"at-abc-policy/replicas":                                "3",
		"validation.policy.admission.k8s.io/validation_failure": "[]",
		"pod-security.kubernetes.io/enforce-policy":             "privileged:latest",
		"authorization.k8s.io/decision":                         "allow",
		"apiserver.latency.k8s.io/total":                        "1ms",
		"k8s.io/deprecated":                                     "true",
	}}
	var got []string
	for _, entry := range auditEntries(event) {
		got = append(got, entry.Summary)
	}
	want := []string{
		"at-abc-policy/replicas = 3",
		"pod-security.kubernetes.io/enforce-policy = privileged:latest",
		"validation.policy.admission.k8s.io/validation_failure = []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
