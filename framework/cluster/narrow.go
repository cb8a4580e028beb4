package cluster

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const admissionGroup = "admissionregistration.k8s.io"

// The kinds that decide about requests of others, and so are narrowed.
const (
	kindMutatingWebhooks   = "MutatingWebhookConfiguration"
	kindValidatingWebhooks = "ValidatingWebhookConfiguration"
	kindValidatingPolicy   = "ValidatingAdmissionPolicy"
	kindValidatingBinding  = "ValidatingAdmissionPolicyBinding"
	kindMutatingPolicy     = "MutatingAdmissionPolicy"
	kindMutatingBinding    = "MutatingAdmissionPolicyBinding"
)

// governs reports whether objects of a kind decide about requests of others.
func governs(gvk schema.GroupVersionKind) bool {
	if gvk.Group != admissionGroup {
		return false
	}
	switch gvk.Kind {
	case kindMutatingWebhooks, kindValidatingWebhooks, kindValidatingPolicy, kindValidatingBinding, kindMutatingPolicy, kindMutatingBinding:
		return true
	default:
		return false
	}
}

// narrowName is the name of the match condition that narrowing adds.
const narrowName = "admissiontest.dev/scenario"

// narrow returns a copy of a webhook configuration, policy or binding that can
// match requests of one scenario only, and matches those as it did before:
//
//   - its namespaceSelector also requires the scenario's label, which only the
//     scenario's namespaces carry;
//   - where a rule can match cluster-scoped resources, which no
//     namespaceSelector excludes, a match condition lets pass those whose name,
//     or whose user's name, has the scenario's ID in it. Since a condition that is
//     false outweighs others that err, it never refuses anybody's request.
//
// Names and references between these objects get the scenario's ID as prefix,
// which keeps their order.
func (r *resources) narrow(gvk schema.GroupVersionKind, manifest map[string]any, id string) map[string]any {
	name, _ := nestedString(manifest, "metadata", "name")
	out := renamed(manifest, id+"-"+name)
	switch gvk.Kind {
	case kindMutatingWebhooks, kindValidatingWebhooks:
		list, _ := out["webhooks"].([]any)
		narrowed := make([]any, 0, len(list))
		for _, item := range list {
			webhook, ok := item.(map[string]any)
			if !ok {
				narrowed = append(narrowed, item)
				continue
			}
			webhook = selectScenario(webhook, id)
			narrowed = append(narrowed, r.conditionScenario(webhook, asList(webhook["rules"]), id))
		}
		if list != nil {
			out["webhooks"] = narrowed
		}
	case kindValidatingPolicy, kindMutatingPolicy:
		spec := cloneMap(out["spec"])
		constraints := cloneMap(spec["matchConstraints"])
		spec["matchConstraints"] = selectScenario(constraints, id)
		out["spec"] = r.conditionScenario(spec, asList(constraints["resourceRules"]), id)
	case kindValidatingBinding, kindMutatingBinding:
		spec := cloneMap(out["spec"])
		if policy, ok := spec["policyName"].(string); ok {
			spec["policyName"] = id + "-" + policy
		}
		out["spec"] = spec
	}
	return out
}

// selectScenario returns a copy of what has a namespaceSelector that requires
// the scenario's label besides what it required before.
func selectScenario(holder map[string]any, id string) map[string]any {
	out := maps.Clone(holder)
	selector := cloneMap(out["namespaceSelector"])
	expressions := append([]any{}, asList(selector["matchExpressions"])...)
	selector["matchExpressions"] = append(expressions, map[string]any{
		"key": ScenarioLabel, "operator": "In", "values": []any{id},
	})
	out["namespaceSelector"] = selector
	return out
}

// conditionScenario returns a copy of what has matchConditions with one more,
// where its rules can match a cluster-scoped resource other than a Namespace.
func (r *resources) conditionScenario(holder map[string]any, rules []any, id string) map[string]any {
	reachesCluster := false
	for _, item := range rules {
		rule, _ := item.(map[string]any)
		groups, names := texts(rule["apiGroups"]), texts(rule["resources"])
		if rule["scope"] == "Namespaced" || onlyNamespaces(groups, names) || r.onlyNamespaced(groups, names) {
			continue
		}
		reachesCluster = true
	}
	if !reachesCluster {
		return holder
	}
	out := maps.Clone(holder)
	conditions := append([]any{}, asList(out["matchConditions"])...)
	out["matchConditions"] = append(conditions, map[string]any{"name": narrowName, "expression": scenarioCondition(id)})
	return out
}

// scenarioCondition is the CEL expression that is true for requests in a
// namespace (which the selector has narrowed) and for cluster-scoped requests of
// the scenario. It never errs, whatever the request: empty fields of request are
// absent in CEL, and an error would count against everybody's requests.
func scenarioCondition(id string) string {
	named := func(object string) string {
		return fmt.Sprintf(`(%[1]s != null && has(%[1]s.metadata) && (has(%[1]s.metadata.name) && %[1]s.metadata.name.contains(%[2]q) || has(%[1]s.metadata.generateName) && %[1]s.metadata.generateName.contains(%[2]q)))`, object, id)
	}
	return strings.Join([]string{
		`has(request.namespace) && request.namespace != ""`,
		fmt.Sprintf(`has(request.name) && request.name.contains(%q)`, id),
		fmt.Sprintf(`request.userInfo.username.contains(%q)`, id),
		named("object"), named("oldObject"),
	}, " || ")
}

// onlyNamespaces reports whether a rule names core namespaces only, which a
// namespaceSelector does exclude.
func onlyNamespaces(groups, names []string) bool {
	if len(groups) != 1 || groups[0] != "" || len(names) == 0 {
		return false
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/")
		if name != "namespaces" {
			return false
		}
	}
	return true
}

func asList(value any) []any { list, _ := value.([]any); return list }

func cloneMap(value any) map[string]any {
	object, _ := value.(map[string]any)
	if object == nil {
		return map[string]any{}
	}
	return maps.Clone(object)
}

func texts(value any) []string {
	var out []string
	for _, item := range asList(value) {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
