package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// conditionName is the name of the match condition that narrowing adds.
const conditionName = "admissiontest.dev/scenario"

// narrow returns a copy of a webhook configuration, policy or binding that matches
// only requests of one scenario. For these requests it matches as before:
//
//   - The namespaceSelector also requires the label of the scenario, which only the
//     namespaces of the scenario have.
//   - If a rule can match cluster-scoped resources, which a namespaceSelector does not
//     exclude, a match condition requires that the name of the object or of the user
//     contains the ID of the scenario, or, if the scope is Labelled, that the object has its
//     label. (The API server itself writes CustomResourceDefinitions, which have the label of the
//     first scenario that gives them.) A match condition that is false takes precedence over one
//     that fails with an error, so no request of another client is refused.
//
// The ID of the scenario becomes a prefix of names and of references between these
// objects. This keeps their order.
func narrow(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, scope *Scope) map[string]any {
	return narrowTo(resources, kind, manifest, toScenario(scope))
}

// narrowing is what webhook configurations and policies are narrowed to.
type narrowing struct {
	// id is the prefix of names.
	id string
	// labels are the requirements for the labels of a namespace.
	labels []any
	// condition is true for requests in a namespace, which labels has narrowed, and for the other
	// requests to match.
	condition string
	// ofNamespaces is true if requests for namespaces need the condition too, besides labels.
	ofNamespaces bool
}

// toScenario returns the narrowing to one scenario.
func toScenario(scope *Scope) narrowing {
	condition := scenarioCondition(scope.ID)
	if scope.Labelled {
		condition += " || " + labelledCondition(scope.ID)
	}
	return narrowing{id: scope.ID, labels: []any{requirement(ScenarioLabel, "In", scope.ID)}, condition: condition}
}

func requirement(label, operator string, values ...any) map[string]any {
	out := map[string]any{"key": label, "operator": operator}
	if len(values) > 0 {
		out["values"] = values
	}
	return out
}

func narrowTo(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	id := to.id
	out := restrictTo(resources, kind, withName(manifest, id+"-"+name), to)
	spec := cloneMap(out["spec"])
	if policy, ok := spec["policyName"].(string); ok {
		spec["policyName"] = id + "-" + policy
		out["spec"] = spec
	}
	return out
}

// restrict is narrow without the names.
func restrict(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, scope *Scope) map[string]any {
	return restrictTo(resources, kind, manifest, toScenario(scope))
}

func restrictTo(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	out := maps.Clone(manifest)
	switch kind.Kind {
	case KindMutatingWebhooks, KindValidatingWebhooks:
		list, given := out["webhooks"].([]any)
		narrowed := make([]any, 0, len(list))
		for _, item := range list {
			if webhook, ok := item.(map[string]any); ok {
				item = requireCondition(resources, requireLabels(webhook, to), asList(webhook["rules"]), to)
			}
			narrowed = append(narrowed, item)
		}
		if given {
			out["webhooks"] = narrowed
		}
	case KindValidatingPolicy, KindMutatingPolicy:
		spec, given := out["spec"].(map[string]any)
		if !given {
			return out // the API server refuses it
		}
		spec = maps.Clone(spec)
		constraints := cloneMap(spec["matchConstraints"])
		spec["matchConstraints"] = requireLabels(constraints, to)
		out["spec"] = requireCondition(resources, spec, asList(constraints["resourceRules"]), to)
	}
	return out
}

// requireLabels returns a copy of an object whose namespaceSelector also requires the
// labels.
func requireLabels(object map[string]any, to narrowing) map[string]any {
	out := maps.Clone(object)
	selector := cloneMap(out["namespaceSelector"])
	selector["matchExpressions"] = append(slices.Clone(asList(selector["matchExpressions"])), to.labels...)
	out["namespaceSelector"] = selector
	return out
}

// requireCondition returns a copy of an object with one more match condition, if its
// rules can match a cluster-scoped resource other than namespaces, or namespaces if the condition is
// about these.
func requireCondition(resources *client.Resources, object map[string]any, rules []any, to narrowing) map[string]any {
	if !slices.ContainsFunc(rules, func(item any) bool {
		rule, _ := item.(map[string]any)
		groups, names := texts(rule["apiGroups"]), texts(rule["resources"])
		return rule["scope"] != "Namespaced" && (to.ofNamespaces || !onlyNamespaces(groups, names)) && !resources.AllNamespaced(groups, names)
	}) {
		return object
	}
	out := maps.Clone(object)
	out["matchConditions"] = append(slices.Clone(asList(out["matchConditions"])), map[string]any{
		"name": conditionName, "expression": to.condition,
	})
	return out
}

// scenarioCondition returns a CEL expression that is true for requests in a namespace,
// which the selector has narrowed, and for cluster-scoped requests of the scenario. It
// must not fail for any request, because an error counts as a match. Empty fields of
// request are absent in CEL.
func scenarioCondition(id string) string {
	pattern := runid.Pattern(id)
	named := func(object string) string {
		return fmt.Sprintf(`(%[1]s != null && has(%[1]s.metadata) && (has(%[1]s.metadata.name) && %[1]s.metadata.name.matches(%[2]q) || has(%[1]s.metadata.generateName) && %[1]s.metadata.generateName.matches(%[2]q)))`, object, pattern)
	}
	return strings.Join([]string{
		`has(request.namespace) && request.namespace != ""`,
		fmt.Sprintf(`has(request.name) && request.name.matches(%q)`, pattern),
		fmt.Sprintf(`request.userInfo.username.matches(%q)`, pattern),
		named("object"), named("oldObject"),
	}, " || ")
}

// labelledCondition returns a CEL expression that is true for requests for objects with the label of
// the scenario. Like scenarioCondition, it does not fail.
func labelledCondition(id string) string {
	labelled := func(object string) string {
		return fmt.Sprintf(`(%[1]s != null && has(%[1]s.metadata) && has(%[1]s.metadata.labels) && %[2]q in %[1]s.metadata.labels && %[1]s.metadata.labels[%[2]q] == %[3]q)`, object, ScenarioLabel, id)
	}
	return labelled("object") + " || " + labelled("oldObject")
}

// onlyNamespaces reports whether a rule names only core namespaces, which a
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

// texts returns the strings in a list.
func texts(value any) []string {
	var out []string
	for _, item := range asList(value) {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
