package rules

import (
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
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
	undeclared := func(_ *harness.Harness, request framework.Request, _ framework.Phase) []check.Variant {
		return subresources(append([]string{request.Subresource}, t.Subject.Subresources...))
	}
	mustIgnore(t, undeclared, check.Effect, "the plugin ignores the subresource, or Subject.Subresources has it")
}

// mustIgnore calls the plugin with variants of each request on which the plugin acts. It reports
// each variant on which the plugin also acts, once. Effect returns what the plugin did.
func mustIgnore(t *check.T, variants check.Variants, effect func(harness.Result) string, want string) {
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
}

// subresources returns variants of a request for subresources that are not in known. Each variant
// has a form in which API servers serve subresources: an update with the whole object or a Scale, a
// create with a body of another kind, or a connect with options.
func subresources(known []string) []check.Variant {
	all := []struct {
		name  string
		apply func(*check.Attributes) bool
	}{
		{"status", asUpdate},
		{"scale", asScale},
		{"binding", asBinding},
		{"exec", asExec},
		{"bogus", asUpdate},
		{"bogus", asAction},
	}
	var variants []check.Variant
	for _, each := range all {
		if slices.Contains(known, each.name) {
			continue
		}
		variants = append(variants, check.Variant{
			Name: fmt.Sprintf("as a request for subresource %q", each.name),
			Apply: func(a *check.Attributes) bool {
				if a.Subresource != "" || !each.apply(a) {
					return false
				}
				a.Subresource = each.name
				return true
			},
		})
	}
	return variants
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

func asBinding(a *check.Attributes) bool {
	if a.Operation != admission.Create || !isPod(a) {
		return false
	}
	a.Kind = corev1.SchemeGroupVersion.WithKind("Binding")
	a.Object = &corev1.Binding{ObjectMeta: nameOf(a.Object), Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
	return true
}

// asAction makes a create one of a kind that no plugin knows.
func asAction(a *check.Attributes) bool {
	if a.Operation != admission.Create {
		return false
	}
	a.Kind = schema.GroupVersionKind{Group: foreignGroup, Version: "v1", Kind: "Action"}
	a.Object = &metav1.PartialObjectMetadata{ObjectMeta: nameOf(a.Object)}
	a.Object.GetObjectKind().SetGroupVersionKind(a.Kind)
	return true
}

func asExec(a *check.Attributes) bool {
	if !isPod(a) {
		return false
	}
	a.Operation, a.Kind = admission.Connect, corev1.SchemeGroupVersion.WithKind("PodExecOptions")
	a.Object, a.OldObject = &corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, nil
	a.Options, a.DryRun = nil, false
	return true
}

func isPod(a *check.Attributes) bool { return a.Resource.GroupResource() == corev1.Resource("pods") }

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
