package providers

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/scenarios"
)

// beforehand returns a right without what is not known before the run: a placeholder in a group or path can stand for
// any, and a name with one is any name.
func beforehand(right apiserver.Right) apiserver.Right {
	if strings.Contains(right.Group, "$(") {
		right.Group = "*"
	}
	if strings.Contains(right.Name, "$(") {
		right.Name = ""
	}
	return right
}

// grants reports whether a rule grants a right.
func grants(rule rbacv1.PolicyRule, right apiserver.Right) bool {
	if right.Path != "" {
		return slices.Contains(rule.Verbs, right.Verb) && slices.Contains(rule.NonResourceURLs, right.Path)
	}
	resource := strings.TrimSuffix(right.Resource+"/"+right.Subresource, "/")
	return slices.Contains(rule.Verbs, right.Verb) && (slices.Contains(rule.APIGroups, right.Group) || slices.Contains(rule.APIGroups, "*")) &&
		slices.Contains(rule.Resources, resource) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, right.Name))
}

// besides reports whether a rule is for what the API server requires besides the right to a request, which no run checks:
// the UID and extra fields of an impersonated user, a signer, the rights in a Role, and those to read a paramKind.
func besides(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Resources, func(name string) bool {
		return name == "uids" || strings.HasPrefix(name, "userextras/") || name == "signers" || name == "subjectaccessreviews"
	}) || slices.Contains(rule.Verbs, "breakglass")
}

// docs/rbac.yaml has the rights that the catalogue needs, and no rule without need. Without its last two roles, no right
// makes the account an administrator.
func TestManifest(t *testing.T) {
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[apiserver.Right]string{}
	for right, who := range apiserver.Rights(needs(all)) {
		wanted[beforehand(right)] = who
	}
	granted := map[apiserver.Right]int{}
	for text := range strings.SplitSeq(docs.RBAC, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(text), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			used := false
			for right := range wanted {
				if grants(rule, right) {
					used = true
					granted[right]++
				}
			}
			if !used && !besides(rule) && role.Name != "admissiontest-transport-service" {
				t.Errorf("%s: no scenario needs %v", role.Name, rule)
			}
			checkRule(t, role.Name, rule)
		}
	}
	for right, who := range wanted {
		if granted[right] == 0 {
			t.Errorf("%s is missing, for %v", right, who)
		}
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
