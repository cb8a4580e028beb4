package providers

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// The role of the engine in docs/rbac.yaml has the rights that every run needs. Without its last two roles, no right makes the
// account an administrator. (TestHarm of package e2e runs the catalogue with it.)
func TestManifest(t *testing.T) {
	missing := apiserver.RunRights()
	for text := range strings.SplitSeq(docs.RBAC, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(text), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			checkRule(t, role.Name, rule)
			missing = slices.DeleteFunc(missing, func(right apiserver.Right) bool {
				resource := strings.TrimSuffix(right.Resource+"/"+right.Subresource, "/")
				return role.Name == "admissiontest-engine" && slices.Contains(rule.Verbs, right.Verb) && slices.Contains(rule.APIGroups, right.Group) && slices.Contains(rule.Resources, resource)
			})
		}
	}
	if len(missing) > 0 {
		t.Errorf("the role of the engine lacks %v", missing)
	}
}

// checkRule fails if a rule is wider than its role allows.
func checkRule(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
	}
	impersonates := has(rule.Verbs, "impersonate")
	if has(rule.Verbs, "*", "escalate", "bind") || has(rule.Resources, "*") || impersonates && len(rule.ResourceNames) == 0 {
		t.Errorf("%s: %v", role, rule)
	}
	administrator := has(rule.Resources, "nodes/proxy", "serviceaccounts/token") || has(rule.Resources, "secrets") && has(rule.Verbs, "get", "list") || impersonates && has(rule.ResourceNames, "system:masters")
	if administrator && role != "admissiontest-as-administrator" || role == "admissiontest-engine" && (impersonates || has(rule.Resources, "secrets")) {
		t.Errorf("%s: %v", role, rule)
	}
}
