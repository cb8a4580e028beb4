package install

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// these it matches as before: the namespaceSelector also requires labels of the namespace, and rules get scope Namespaced,
// because a namespaceSelector does not exclude cluster-scoped objects.
//
// The ID becomes a prefix of names and of references between these objects. This keeps their order.
func narrow(kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	manifest = withNames(manifest, to.id+"-"+name, func(policy string) string { return to.id + "-" + policy })
	return withMatching(kind, manifest, func(m matching) {
		m.require(to.labels)
		if rules := m.rules(); rules != nil && !to.clusterScoped {
			m.constraints[m.field] = namespacedOnly(rules)
		}
		if to.condition != "" && slices.ContainsFunc(m.rules(), func(item any) bool { return cloneMap(item)["scope"] != "Namespaced" }) {
			m.addCondition("admissiontest.dev/run", to.condition)
		}
	})
}

// namespacedOnly returns copies of rules that match namespaced objects only. One with scope Cluster then matches none.
func namespacedOnly(rules []any) []any {
	rules = slices.Clone(rules)
	for i, item := range rules {
		rule, ok := item.(map[string]any)
		if !ok || rule["apiGroups"] == nil {
			continue // the API server refuses it
		}
		rule = maps.Clone(rule)
		if rule["scope"] == "Cluster" {
			rule["apiGroups"] = []any{"none.admissiontest.dev"}
		} else {
			rule["scope"] = "Namespaced"
		}
		rules[i] = rule
	}
	return rules
}

// matching is what says which requests a webhook or policy matches.
type matching struct {
	// owner has the match conditions: it is the webhook, or the spec of the policy.
	owner map[string]any
	// constraints has the selectors, and the rules in a field: it is the webhook, or spec.matchConstraints.
	constraints map[string]any
	field       string
}

func (m matching) rules() []any { return asList(m.constraints[m.field]) }

// require adds requirements to the namespaceSelector.
func (m matching) require(labels []any) {
	selector := cloneMap(m.constraints["namespaceSelector"])
	selector["matchExpressions"] = append(slices.Clone(asList(selector["matchExpressions"])), labels...)
	m.constraints["namespaceSelector"] = selector
}

// addCondition adds a match condition.
func (m matching) addCondition(name, expression string) {
	m.owner["matchConditions"] = append(slices.Clone(asList(m.owner["matchConditions"])), map[string]any{"name": name, "expression": expression})
}

// withMatching returns a copy of a webhook configuration or policy, after edit has changed each webhook, or the policy.
// Other kinds are returned as they are.
func withMatching(kind schema.GroupVersionKind, manifest map[string]any, edit func(matching)) map[string]any {
	out := maps.Clone(manifest)
	switch kind.Kind {
	case KindMutatingWebhooks, KindValidatingWebhooks:
		list := slices.Clone(asList(manifest["webhooks"]))
		for i, item := range list {
			if webhook, ok := item.(map[string]any); ok {
				webhook = maps.Clone(webhook)
				edit(matching{webhook, webhook, "rules"})
				list[i] = webhook
			}
		}
		if list != nil {
			out["webhooks"] = list
		}
	case KindValidatingPolicy, KindMutatingPolicy:
		spec, given := manifest["spec"].(map[string]any)
		if !given {
			return out // the API server refuses a policy without it
		}
		spec = maps.Clone(spec)
		constraints := cloneMap(spec["matchConstraints"])
		edit(matching{spec, constraints, "resourceRules"})
		if len(constraints) > 0 {
			spec["matchConstraints"] = constraints
		}
		out["spec"] = spec
	}
	return out
}

// toScenario returns the narrowing to the namespaces of one scenario: what it has, and what its requests are for.
// The API server gives each Namespace a label with its name.
func (i *Installer) toScenario(scope *Scope) narrowing {
	names := slices.DeleteFunc(scope.allNamespaces(), func(name string) bool { return !runid.Has(name, scope.ID) || strings.Contains(name, "$(") })
	slices.Sort(names)
	var values []any
	for _, name := range slices.Compact(names) {
		values = append(values, name)
	}
	return narrowing{id: scope.prefix(), labels: []any{requirement(corev1.LabelMetadataName, "In", values...)}, clusterScoped: scope.Probes}
}

// allNamespaces returns the namespaces of a scenario, and those that its requests name. Some can have placeholders.
func (s *Scope) allNamespaces() []string {
	s.mu.Lock()
	names := append([]string{s.ID}, s.namespaces...)
	s.mu.Unlock()
	for _, request := range s.Requests {
		names = append(names, request.Namespace)
		if request.Kind.Group == "" && request.Kind.Kind == "Namespace" {
			names = append(names, request.Name)
		}
	}
	return names
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

// The labels of everything that a run creates.
const (
	// RunLabel has the ID of the run as its value. Cleanup selects by it.
	RunLabel = "admissiontest.dev/run"
	// ScenarioLabel has the ID of the scenario as its value. Webhook configurations and
	// policies are narrowed to namespaces with this label.
	ScenarioLabel = "admissiontest.dev/scenario"
)

// Labels returns the labels for an object of a scenario.
func (i *Installer) Labels(id string) map[string]any {
	return map[string]any{RunLabel: i.Run, ScenarioLabel: id}
}

// WithLabels returns a shallow copy of a manifest with more labels.
func WithLabels(manifest map[string]any, labels map[string]any) map[string]any {
	return withMetadata(manifest, func(metadata map[string]any) {
		all := cloneMap(metadata["labels"])
		maps.Copy(all, labels)
		metadata["labels"] = all
	})
}

// withNames returns a shallow copy of a manifest with another name and, if it is a binding, another name of its policy.
func withNames(manifest map[string]any, name string, policyName func(string) string) map[string]any {
	manifest = withMetadata(manifest, func(metadata map[string]any) { metadata["name"] = name })
	spec := cloneMap(manifest["spec"])
	if policy, ok := spec["policyName"].(string); ok {
		spec["policyName"] = policyName(policy)
		manifest["spec"] = spec
	}
	return manifest
}

func withMetadata(manifest map[string]any, edit func(metadata map[string]any)) map[string]any {
	out := maps.Clone(manifest)
	metadata := cloneMap(out["metadata"])
	edit(metadata)
	out["metadata"] = metadata
	return out
}

// cloneMap returns a shallow copy of a map, or an empty map.
func cloneMap(value any) map[string]any {
	object, _ := value.(map[string]any)
	if object == nil {
		return map[string]any{}
	}
	return maps.Clone(object)
}

// AdmissionGroup is the API group of webhook configurations and policies.
const AdmissionGroup = "admissionregistration.k8s.io"

// The kinds of AdmissionGroup that decide about requests.
const (
	KindMutatingWebhooks   = "MutatingWebhookConfiguration"
	KindValidatingWebhooks = "ValidatingWebhookConfiguration"
	KindValidatingPolicy   = "ValidatingAdmissionPolicy"
	KindValidatingBinding  = "ValidatingAdmissionPolicyBinding"
	KindMutatingPolicy     = "MutatingAdmissionPolicy"
	KindMutatingBinding    = "MutatingAdmissionPolicyBinding"
)

// AdmissionKinds returns the kinds of AdmissionGroup that decide about requests.
func AdmissionKinds() []string {
	return []string{KindMutatingWebhooks, KindValidatingWebhooks, KindValidatingPolicy, KindValidatingBinding, KindMutatingPolicy, KindMutatingBinding}
}

// IsAdmission reports whether objects of a kind decide about requests: webhook
// configurations, policies and their bindings.
func IsAdmission(kind schema.GroupVersionKind) bool {
	return kind.Group == AdmissionGroup && slices.Contains(AdmissionKinds(), kind.Kind)
}

// RemovalRank returns the rank of a resource: resources of a lower rank are removed first. A policy can refuse the removal
// of webhook configurations, and it is a binding that makes a policy effective. Nothing can refuse the removal of
// bindings: Kubernetes exempts them.
func RemovalRank(res client.Resource) int {
	switch {
	case res.Group != AdmissionGroup:
		return 2
	case strings.HasSuffix(res.Resource, "bindings"):
		return 0
	default:
		return 1
	}
}
