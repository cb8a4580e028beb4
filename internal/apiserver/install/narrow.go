package install

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// narrowing is what webhook configurations, policies and bindings are narrowed to.
type narrowing struct {
	// id is the prefix of names.
	id string
	// labels are the requirements for the labels of a namespace.
	labels []any
	// clusterScoped is true if rules match cluster-scoped objects as before.
	clusterScoped bool
	// condition is added to what matches cluster-scoped objects. Empty adds none.
	condition string
}

// narrow returns a copy of a webhook configuration, policy or binding that matches only requests in some namespaces. For
// these it matches as before: the namespaceSelector also requires labels of the namespace, and a rule that can
// match cluster-scoped objects, which a namespaceSelector does not exclude, gets scope Namespaced.
//
// The ID becomes a prefix of names and of references between these objects. This keeps their order.
func narrow(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	out := withName(manifest, to.id+"-"+name)
	if list, given := out["webhooks"].([]any); given {
		narrowed := make([]any, 0, len(list))
		for _, item := range list {
			if webhook, ok := item.(map[string]any); ok {
				webhook = to.match(resources, webhook, "rules")
				item = to.withCondition(resources, webhook, asList(webhook["rules"]))
			}
			narrowed = append(narrowed, item)
		}
		out["webhooks"] = narrowed
	}
	spec, given := out["spec"].(map[string]any)
	if !given {
		return out // the API server refuses a policy without it
	}
	spec = maps.Clone(spec)
	if policy, ok := spec["policyName"].(string); ok {
		spec["policyName"] = to.id + "-" + policy
	}
	if kind.Kind == KindValidatingPolicy || kind.Kind == KindMutatingPolicy {
		constraints := to.match(resources, cloneMap(spec["matchConstraints"]), "resourceRules")
		spec["matchConstraints"] = constraints
		spec = to.withCondition(resources, spec, asList(constraints["resourceRules"]))
	}
	out["spec"] = spec
	return out
}

// match returns a copy of what has a namespaceSelector and rules.
func (to narrowing) match(resources *client.Resources, object map[string]any, field string) map[string]any {
	out := maps.Clone(object)
	selector := cloneMap(out["namespaceSelector"])
	selector["matchExpressions"] = append(slices.Clone(asList(selector["matchExpressions"])), to.labels...)
	out["namespaceSelector"] = selector
	if rules := slices.Clone(asList(out[field])); len(rules) > 0 && !to.clusterScoped {
		for i, item := range rules {
			if rule := cloneMap(item); matchesClusterScoped(resources, rule) {
				rule["scope"] = "Namespaced"
				rules[i] = rule
			}
		}
		out[field] = rules
	}
	return out
}

// withCondition returns a copy of what has match conditions, with one more if its rules can match cluster-scoped objects.
func (to narrowing) withCondition(resources *client.Resources, object map[string]any, rules []any) map[string]any {
	if to.condition == "" || !slices.ContainsFunc(rules, func(item any) bool { return matchesClusterScoped(resources, cloneMap(item)) }) {
		return object
	}
	out := maps.Clone(object)
	out["matchConditions"] = append(slices.Clone(asList(out["matchConditions"])), map[string]any{"name": "admissiontest.dev/run", "expression": to.condition})
	return out
}

// matchesClusterScoped reports whether a rule can match cluster-scoped resources.
func matchesClusterScoped(resources *client.Resources, rule map[string]any) bool {
	return rule["scope"] != "Namespaced" && rule["apiGroups"] != nil && !resources.AllNamespaced(texts(rule["apiGroups"]), texts(rule["resources"]))
}

// toScenario returns the narrowing to the namespaces of one scenario: what it has, and what its requests are for.
// The API server gives each Namespace a label with its name.
func (i *Installer) toScenario(scope *Scope) narrowing {
	scope.mu.Lock()
	names := append([]string{scope.ID}, scope.namespaces...)
	scope.mu.Unlock()
	for _, request := range scope.Requests {
		for _, name := range []string{request.Namespace, nameOfNamespace(request)} {
			if runid.Has(name, scope.ID) && !strings.Contains(name, "$(") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var values []any
	for _, name := range slices.Compact(names) {
		values = append(values, name)
	}
	return narrowing{id: scope.ID, labels: []any{requirement(corev1.LabelMetadataName, "In", values...)}, clusterScoped: scope.Probes}
}

// nameOfNamespace returns the name of the Namespace that a request is for, or "".
func nameOfNamespace(request framework.Request) string {
	if request.Kind.Group != "" || request.Kind.Kind != "Namespace" {
		return ""
	}
	return request.Name
}

func requirement(label, operator string, values ...any) map[string]any {
	out := map[string]any{"key": label, "operator": operator}
	if len(values) > 0 {
		out["values"] = values
	}
	return out
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
