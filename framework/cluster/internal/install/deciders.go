package install

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
)

// decider is a webhook, or a policy with one of its bindings, as the scenario gives it.
type decider struct {
	// name names it in messages.
	name string
	// matches are its rules and selectors: those of the webhook, or those of the policy and
	// those of the binding.
	matches []map[string]any
	// params is the namespace that paramRef names, or "".
	params string
	// policy is true for a policy.
	policy bool
}

// given is a webhook configuration, policy or binding as the scenario gives it.
type given struct {
	kind     string
	name     string
	manifest map[string]any
}

// remember notes a webhook configuration, policy or binding before it is narrowed.
func (s *Scope) remember(kind schema.GroupVersionKind, name string, manifest map[string]any) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.forget(kind, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, given{kind.Kind, name, manifest})
}

// forget is for one that was deleted.
func (s *Scope) forget(kind schema.GroupVersionKind, name string) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = slices.DeleteFunc(s.given, func(g given) bool { return g.kind == kind.Kind && g.name == name })
}

// Given returns the webhook configurations, policies and bindings of the scenario of an ID, and those
// of the run (InstallForRun), as their authors wrote them: with their names, and not narrowed.
func (i *Installer) Given(id string) []map[string]any {
	i.mu.Lock()
	scopes := slices.Clone(i.scopes)
	i.mu.Unlock()
	var all []map[string]any
	for _, scope := range scopes {
		if scope.ID != id && scope.ID != projectID(i.Run) {
			continue
		}
		scope.mu.Lock()
		for _, g := range scope.given {
			manifest := withName(g.manifest, g.name)
			if policy, found, _ := unstructured.NestedString(manifest, "spec", "policyName"); found {
				spec := cloneMap(manifest["spec"])
				spec["policyName"] = strings.TrimPrefix(policy, scope.ID+"-")
				manifest["spec"] = spec
			}
			all = append(all, manifest)
		}
		scope.mu.Unlock()
	}
	return all
}

// patch applies the patch of a Request to a webhook configuration, policy or binding as the scenario
// gives it. If it cannot be applied there, nothing is known of what the author means: then it remains.
func (s *Scope) patch(kind schema.GroupVersionKind, name string, request framework.HTTP) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, g := range s.given {
		if g.kind != kind.Kind || g.name != name {
			continue
		}
		if patched, err := client.Patched(g.manifest, request); err == nil {
			s.given[n].manifest = patched
		}
	}
}

// deciders returns what the scenario has to decide about requests. A policy without a binding
// decides about none.
func (s *Scope) deciders(resources *client.Resources) []decider {
	s.mu.Lock()
	all := slices.Clone(s.given)
	s.mu.Unlock()
	var out []decider
	for _, g := range all {
		switch g.kind {
		case KindMutatingWebhooks, KindValidatingWebhooks:
			for _, item := range asList(g.manifest["webhooks"]) {
				webhook := cloneMap(item)
				out = append(out, decider{name: fmt.Sprintf("%s %s, webhook %v", g.kind, g.name, webhook["name"]), matches: []map[string]any{webhook}})
			}
		case KindValidatingBinding, KindMutatingBinding:
			spec := cloneMap(g.manifest["spec"])
			policyName, _ := spec["policyName"].(string)
			at := slices.IndexFunc(all, func(p given) bool {
				return p.kind+"Binding" == g.kind && p.name == strings.TrimPrefix(policyName, s.ID+"-")
			})
			if at < 0 {
				continue
			}
			policy := cloneMap(all[at].manifest["spec"])
			one := decider{policy: true, name: fmt.Sprintf("%s %s, binding %s", all[at].kind, all[at].name, g.name), matches: []map[string]any{cloneMap(policy["matchConstraints"])}}
			if own, ok := spec["matchResources"].(map[string]any); ok {
				one.matches = append(one.matches, own)
			}
			if namespacedParams(resources, policy) {
				one.params, _, _ = unstructured.NestedString(spec, "paramRef", "namespace")
			}
			out = append(out, one)
		}
	}
	return out
}

// namespacedParams reports whether the parameters of a policy live in namespaces.
func namespacedParams(resources *client.Resources, policy map[string]any) bool {
	apiVersion, _, _ := unstructured.NestedString(policy, "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(policy, "paramKind", "kind")
	res, err := resources.Of(schema.FromAPIVersionAndKind(apiVersion, kind))
	return err == nil && res.Namespaced
}

// selects reports whether a decider can match a request: its rules do, and its
// objectSelectors. The versions in rules are not compared, because a request is converted to
// them; match conditions are not evaluated.
func (d decider) selects(res client.Resource, request framework.Request) bool {
	for _, match := range d.matches {
		rules := append(asList(match["rules"]), asList(match["resourceRules"])...)
		matching := func(item any) bool { return ruleMatches(cloneMap(item), res, request) }
		if len(rules) > 0 && !slices.ContainsFunc(rules, matching) || slices.ContainsFunc(asList(match["excludeResourceRules"]), matching) {
			return false
		}
		if object, known := createdLabels(request); known && !selectorOf(match["objectSelector"]).Matches(object) {
			return false
		}
	}
	return true
}

// ruleMatches reports whether a rule of a webhook or policy matches a request. See
// k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules.
func ruleMatches(rule map[string]any, res client.Resource, request framework.Request) bool {
	has := func(field string, wanted ...string) bool {
		return slices.ContainsFunc(texts(rule[field]), func(text string) bool { return text == "*" || slices.Contains(wanted, text) })
	}
	resource := slices.ContainsFunc(texts(rule["resources"]), func(text string) bool {
		name, subresource, _ := strings.Cut(text, "/")
		return (name == "*" || name == res.Resource) && (subresource == "*" || subresource == request.Subresource)
	})
	named := texts(rule["resourceNames"])
	return resource && has("operations", operations(request.Verb)...) && has("apiGroups", res.Group) &&
		(rule["scope"] != "Namespaced" || res.Namespaced) && (rule["scope"] != "Cluster" || !res.Namespaced) &&
		(len(named) == 0 || slices.Contains(named, request.Name))
}

// operations returns the operations that a request can be in admission.
func operations(verb framework.Verb) []string {
	switch verb {
	case framework.VerbCreate:
		return []string{"CREATE"}
	case framework.VerbApply:
		return []string{"CREATE", "UPDATE"}
	case framework.VerbUpdate, framework.VerbPatch:
		return []string{"UPDATE"}
	case framework.VerbDelete, framework.VerbDeleteCollection:
		return []string{"DELETE"}
	case framework.VerbConnect:
		return []string{"CONNECT"}
	default:
		return nil
	}
}

// createdLabels returns the labels of the object that a request creates. Those of an object that
// exists are not known, and an objectSelector is matched against both.
func createdLabels(request framework.Request) (labels.Set, bool) {
	if request.Verb != framework.VerbCreate || request.Object == nil || request.HTTP.RawBody != nil {
		return nil, false
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return nil, false
	}
	return (&unstructured.Unstructured{Object: fields}).GetLabels(), true
}

// selectorOf returns a label selector. One that the API server would refuse matches nothing.
func selectorOf(value any) labels.Selector {
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(cloneMap(value), &typed); err != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
