package check

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
)

// separated returns the Subject with what is no policy among Given, and with a binding for each policy that has none, like
// a PolicyTest.
func (s Subject) separated() Subject {
	var policies = s.Policies
	s.Policies = nil
	for _, m := range policies {
		if object.IsPolicy(m.Object) {
			s.Policies = append(s.Policies, m)
		} else {
			s.Given = append(s.Given, m)
		}
	}
	for _, m := range slices.Clone(s.Policies) {
		u := unstructured.Unstructured{Object: m.Object}
		bound := slices.ContainsFunc(s.Bindings(), func(b unstructured.Unstructured) bool {
			name, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
			return b.GetKind() == u.GetKind()+"Binding" && name == u.GetName()
		})
		if bound || strings.HasSuffix(u.GetKind(), "Binding") {
			continue
		}
		spec := map[string]any{"policyName": u.GetName()}
		if u.GetKind() == validatingPolicy {
			spec["validationActions"] = []any{"Deny"}
		}
		kind, _, _ := unstructured.NestedStringMap(u.Object, "spec", "paramKind")
		for _, given := range s.Given {
			if param := (unstructured.Unstructured{Object: given.Object}); param.GetAPIVersion() == kind["apiVersion"] && param.GetKind() == kind["kind"] {
				ref := map[string]any{"name": param.GetName(), "parameterNotFoundAction": "Deny"}
				if param.GetNamespace() != "" {
					ref["namespace"] = param.GetNamespace()
				}
				spec["paramRef"] = ref
			}
		}
		m.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind() + "Binding", "metadata": map[string]any{"name": u.GetName()}, "spec": spec}
		s.Policies = append(s.Policies, m)
	}
	return s
}

// users returns the users whose requests are tried: the administrator, and for expressions about users others too.
func (s Subject) users() []*framework.User {
	users := []*framework.User{nil}
	for _, p := range s.List() {
		for _, text := range p.expressions() {
			if !strings.Contains(text, "userInfo") && !Names(text, "authorizer") {
				continue
			}
			if len(users) == 1 {
				users = append(users, &framework.User{Name: "jane"})
			}
			for _, name := range constantsIn([]string{text}).texts {
				users = append(users, &framework.User{Name: name}, &framework.User{Name: "jane", Groups: []string{name}})
			}
		}
	}
	return users[:min(len(users), mostConstants)]
}

// namespaces returns the labels that namespaceSelectors and expressions ask for, after none.
func (s Subject) namespaces() []map[string]string {
	all := []map[string]string{{}}
	add := func(labels map[string]string) {
		if !slices.ContainsFunc(all, func(known map[string]string) bool { return maps.Equal(known, labels) }) {
			all = append(all, labels)
		}
	}
	for _, labels := range s.selected("namespaceSelector") {
		add(labels)
	}
	for _, p := range s.List() {
		for _, text := range p.expressions() {
			for _, value := range constantsIn([]string{text}).texts {
				for _, key := range p.namespaceLabels(text) {
					if value != key && aKey.MatchString(value) && len(all) < mostSpaces {
						add(map[string]string{key: value})
					}
				}
			}
		}
	}
	return all
}

// selected returns labels that the selectors of policies and bindings in a field ask for.
func (s Subject) selected(field string) []map[string]string {
	var all []map[string]string
	for _, m := range s.Policies {
		for _, in := range []string{"matchConstraints", "matchResources"} {
			found, _, _ := unstructured.NestedMap(m.Object, "spec", in, field)
			var selector metav1.LabelSelector
			if runtime.DefaultUnstructuredConverter.FromUnstructured(found, &selector) != nil {
				continue
			}
			labels := map[string]string{}
			maps.Copy(labels, selector.MatchLabels)
			for _, each := range selector.MatchExpressions {
				switch {
				case each.Operator == metav1.LabelSelectorOpIn && len(each.Values) > 0:
					labels[each.Key] = each.Values[0]
				case each.Operator == metav1.LabelSelectorOpExists:
					labels[each.Key] = anExample
				}
			}
			all = append(all, labels)
		}
	}
	return all
}

// labelled returns an object, and copies with the labels that objectSelectors ask for.
func (s Subject) labelled(manifest map[string]any) []map[string]any {
	all := []map[string]any{manifest}
	for _, labels := range s.selected("objectSelector") {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
		both := u.GetLabels()
		if len(labels) == 0 {
			continue
		}
		if both == nil {
			both = map[string]string{}
		}
		maps.Copy(both, labels)
		u.SetLabels(both)
		all = append(all, u.Object)
	}
	return all[:min(len(all), mostSpaces)]
}

// mostSpaces limits the namespaces, and the labelled copies.
const mostSpaces = 6

// namespaceLabels returns the labels of the namespace that an expression reads: also that with its name.
func (p Policy) namespaceLabels(text string) []string {
	var keys []string
	for root, named := range map[string]Path{"namespaceObject": {"metadata", "name"}, "object": {"metadata", "namespace"}, "request": {"namespace"}} {
		found, _ := p.reads([]string{text}, root)
		for _, one := range found {
			for _, path := range one.paths {
				if slices.Equal(path, named) && !slices.Contains(keys, corev1.LabelMetadataName) {
					keys = append(keys, corev1.LabelMetadataName)
				}
				if len(path) != 3 || root != "namespaceObject" || path[1] != any("labels") {
					continue
				}
				if key, ok := path[2].(string); ok {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}
