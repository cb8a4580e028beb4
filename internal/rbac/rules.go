package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// rules returns the rules that grant rights, and no others. Resources with the same group,
// verbs and remark share a rule, and so do the names of one resource.
func rules(rights []apiserver.Right) []rbacv1.PolicyRule {
	verbs := map[apiserver.Right][]string{}
	for _, right := range rights {
		of := right
		of.Verb = ""
		verbs[of] = append(verbs[of], right.Verb)
	}
	byKey := map[string]*rbacv1.PolicyRule{}
	for right, list := range verbs {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
		rule := rbacv1.PolicyRule{Verbs: slices.Compact(list)}
		key := []string{strings.Join(list, " ")}
		if right.Path != "" {
			rule.NonResourceURLs = []string{right.Path}
			key = append(key, "paths")
		} else {
			rule.APIGroups, rule.Resources = []string{right.Group}, []string{resource(right)}
			key = append(key, right.Group)
			if right.Name != "" {
				rule.ResourceNames = []string{right.Name}
				key = append(key, resource(right))
			}
			key = append(key, remark(rule))
		}
		if old := byKey[strings.Join(key, "\n")]; old != nil {
			old.NonResourceURLs = merged(old.NonResourceURLs, rule.NonResourceURLs)
			old.Resources = merged(old.Resources, rule.Resources)
			old.ResourceNames = merged(old.ResourceNames, rule.ResourceNames)
		} else {
			byKey[strings.Join(key, "\n")] = &rule
		}
	}
	var out []rbacv1.PolicyRule
	for _, rule := range byKey {
		out = append(out, *rule)
	}
	slices.SortFunc(out, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(
			slices.Compare(a.NonResourceURLs, b.NonResourceURLs), slices.Compare(a.APIGroups, b.APIGroups),
			slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames),
		)
	})
	return out
}

func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// resource returns the resource of a right as rules name it: "pods/log".
func resource(right apiserver.Right) string {
	if right.Subresource != "" {
		return right.Resource + "/" + right.Subresource
	}
	return right.Resource
}

// order returns the place of a verb in a list.
func order(verb string) int {
	usual := []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}
	if i := slices.Index(usual, verb); i >= 0 {
		return i
	}
	return len(usual)
}
