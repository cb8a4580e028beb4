package rules

import (
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// AnySubresource in Subject.Subresources means all of them.
const AnySubresource = "*"

func checkSubresources(t *check.T) {
	calls := t.MustNotPanic(func(h *harness.Harness, request framework.Request, _ framework.Phase) []check.Variant {
		return append(subresources(nil), unknownResource(t, h, request))
	})
	if slices.Contains(t.Subject.Subresources, AnySubresource) {
		if calls > 0 {
			t.Reached()
		}
		return
	}
	known := slices.Clone(t.Subject.Subresources)
	for _, request := range t.Requests() {
		known = append(known, request.Subresource)
	}
	if mustIgnore(t, check.SameVariants(subresources(known)...), check.Effect, "the plugin ignores the subresource, or Subject.Subresources has it") && !t.HasReached() {
		t.Unsupported("API servers serve no other subresource of these resources by an operation that the plugin handles")
	}
}

// mustIgnore calls the plugin with variants of each request on which the plugin acts. It reports
// each variant on which the plugin also acts, once. Effect returns what the plugin did. It returns whether the plugin acted.
func mustIgnore(t *check.T, variants check.Variants, effect func(harness.Result) string, want string) (acts bool) {
	late, reported := t.HalfBudget(), map[string]bool{}
	original, h := t.Plugin(), t.Plugin()
	for _, request := range t.Requests() {
		for _, phase := range check.Phases() {
			plain, ok := t.AttributesFor(original, request, phase)
			if !ok || !check.WouldCall(original.Plugin(), phase, plain.Operation) || late() {
				continue
			}
			result, thrown := t.Call(original, plain.Record(), phase)
			if thrown != nil {
				original = t.Plugin()
				continue
			}
			if check.Effect(result) == "" {
				continue
			}
			acts = true
			for _, variant := range variants(h, request, phase) {
				varied, ok := t.AttributesFor(h, request, phase)
				if !ok || !variant.Apply(&varied) || !check.WouldCall(h.Plugin(), phase, varied.Operation) {
					continue
				}
				result, thrown := t.Call(h, varied.Record(), phase)
				if thrown != nil {
					h = t.Plugin()
					continue
				}
				t.Reached()
				if what := effect(result); what != "" && !reported[variant.Name] {
					reported[variant.Name] = true
					t.Errorf("%s (%s), %s: in the %s phase the plugin %s\nwant: %s", request, varied, variant.Name, phase, what, want)
				}
			}
		}
	}
	return acts
}

// subresources returns variants of a request for subresources that are not in known, and that an API server serves for the
// resource. Each variant has the form in which it serves the subresource: an update with the whole object or a Scale, a create
// with a body of another kind, or a connect with options.
func subresources(known []string) []check.Variant {
	all := []struct {
		name  string
		apply func(*check.Attributes) bool
	}{
		{"status", asUpdate},
		{"scale", asScale},
		{"binding", asCreate(corev1.SchemeGroupVersion.WithKind("Binding"), func(named metav1.ObjectMeta) runtime.Object {
			return &corev1.Binding{ObjectMeta: named, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
		})},
		{"eviction", asCreate(policyv1.SchemeGroupVersion.WithKind("Eviction"), func(named metav1.ObjectMeta) runtime.Object {
			return &policyv1.Eviction{ObjectMeta: named}
		})},
		{"token", asCreate(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), func(named metav1.ObjectMeta) runtime.Object {
			return &authenticationv1.TokenRequest{ObjectMeta: named}
		})},
		{"exec", asExec},
	}
	var variants []check.Variant
	for _, each := range all {
		if slices.Contains(known, each.name) {
			continue
		}
		variants = append(variants, check.Variant{
			Name: fmt.Sprintf("as a request for subresource %q", each.name),
			Apply: func(a *check.Attributes) bool {
				if a.Subresource != "" || !serves(a, each.name) || !each.apply(a) {
					return false
				}
				a.Subresource = each.name
				return true
			},
		})
	}
	return variants
}

// serves reports whether an API server serves a subresource. A custom resource can have a status, and a scale if it has replicas.
func serves(a *check.Attributes, subresource string) bool {
	if !kinds.IsBuiltInGroup(a.Resource.Group) {
		_, typed := check.Field(a.Object, "Spec", "Replicas")
		loose, _ := a.Object.(*unstructured.Unstructured)
		return subresource == "status" || subresource == "scale" && (typed || loose != nil)
	}
	return slices.Contains(kinds.SubresourcesOf(a.Resource.GroupResource()), subresource)
}

// asUpdate makes a create or an update an update with the same object.
func asUpdate(a *check.Attributes) bool {
	if a.Operation == admission.Create && a.Object != nil && a.Name != "" {
		a.Operation, a.OldObject, a.Options = admission.Update, a.Object.DeepCopyObject(), &metav1.UpdateOptions{}
	}
	return a.Operation == admission.Update && a.Object != nil
}

func asScale(a *check.Attributes) bool {
	if !asUpdate(a) {
		return false
	}
	scale := func(object runtime.Object) runtime.Object {
		if object == nil {
			return nil
		}
		return &autoscalingv1.Scale{ObjectMeta: nameOf(object), Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	}
	a.Kind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	a.Object, a.OldObject = scale(a.Object), scale(a.OldObject)
	return true
}

// asCreate makes a create one with a body of another kind.
func asCreate(kind schema.GroupVersionKind, body func(metav1.ObjectMeta) runtime.Object) func(*check.Attributes) bool {
	return func(a *check.Attributes) bool {
		if a.Operation != admission.Create || a.Name == "" {
			return false
		}
		a.Kind, a.Object = kind, body(nameOf(a.Object))
		return true
	}
}

func asExec(a *check.Attributes) bool {
	a.Operation, a.Kind = admission.Connect, corev1.SchemeGroupVersion.WithKind("PodExecOptions")
	a.Object, a.OldObject = &corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, nil
	a.Options, a.DryRun = nil, false
	return true
}

func nameOf(object runtime.Object) metav1.ObjectMeta {
	if accessor, err := meta.Accessor(object); err == nil {
		return metav1.ObjectMeta{Name: accessor.GetName(), Namespace: accessor.GetNamespace()}
	}
	return metav1.ObjectMeta{}
}

// foreignGroup is an API group that no plugin knows.
const foreignGroup = "foreign.example.com"

// unknownResource returns a variant of a request for a custom resource that no plugin knows.
func unknownResource(t *check.T, h *harness.Harness, request framework.Request) check.Variant {
	return customResource(t, h, request, schema.GroupVersionResource{Group: foreignGroup, Version: "v1", Resource: "widgets"}, "Widget")
}

// customResource returns a variant of a request for a custom resource with the same content.
func customResource(t *check.T, h *harness.Harness, request framework.Request, resource schema.GroupVersionResource, kind string) check.Variant {
	return check.Variant{
		Name: fmt.Sprintf("as a request for %s", resource.GroupResource()),
		Apply: func(a *check.Attributes) bool {
			if a.Operation == admission.Connect || a.Subresource != "" {
				return false
			}
			a.Resource, a.Kind = resource, resource.GroupVersion().WithKind(kind)
			object, old := t.Unstructured(h, request, a.Kind)
			if a.Object != nil {
				a.Object = object
			}
			if a.OldObject != nil {
				a.OldObject = old
			}
			return true
		},
	}
}
