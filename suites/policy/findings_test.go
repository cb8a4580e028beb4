package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/suites/policy"
)

// An API server writes the rules of a ClusterRole without rules as null, so has() is true, and a macro has an error. This
// is the defect of C-0280 of cel-admission-library, in a policy of our own.
func TestFindingHasIsTrueForNull(t *testing.T) {
	const roles = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: wildcards}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [clusterroles]}]
  validations: [{expression: "!has(object.rules) || object.rules.all(r, !('*' in r.verbs))", message: no wildcards}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: wildcards}
spec: {policyName: wildcards, validationActions: [Deny]}
`
	s := policy.Subject{
		Policies: file(t, roles),
		Good:     file(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
	}
	for expression, want := range map[string][]string{
		"!has(object.rules) || object.rules.all(":                             {"PO-ERR-1"},
		"!has(object.rules) || object.rules == null || object.rules.all(":     nil,
		"object.?rules.orValue([]) == null || object.?rules.orValue([]).all(": nil,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			s := s
			s.Policies = file(t, strings.ReplaceAll(roles, "!has(object.rules) || object.rules.all(", expression))
			_, failed := verdicts(t, s, policy.Only("PO-ERR-1", "PO-VERDICT-1"))
			if !slices.Equal(failed, want) {
				t.Errorf("it breaks %v; want %v", failed, want)
			}
		})
	}
}
