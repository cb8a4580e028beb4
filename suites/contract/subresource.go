package contract

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
)

// AnySubresource says, in Subject.Subresources, that the plugin acts upon all of them.
const AnySubresource = "*"

func checkSubresources(t *Trial) {
	unknown := t.mustNotPanic(func(h *harness.Harness, request framework.Request, _ framework.Phase) []variation {
		return append(subresources(nil), t.unknownResource(h, request))
	})
	if slices.Contains(t.Subject.Subresources, AnySubresource) {
		if unknown > 0 {
			t.Reached()
		}
		return
	}
	t.leavesAlone(func(_ *harness.Harness, request framework.Request) []variation {
		return subresources(append([]string{request.Subresource}, t.Subject.Subresources...))
	}, acted)
}

// leavesAlone calls the plugin with variations of requests that it acts upon, and fails
// where it acts upon those too. What it did is told by did, of each variation once.
func (t *Trial) leavesAlone(of func(h *harness.Harness, request framework.Request) []variation, did func(harness.Result) string) {
	late, told := t.halfTime(), map[string]bool{}
	as, h := t.Plugin(), t.Plugin()
	for _, request := range t.Seeds() {
		for _, phase := range bothPhases() {
			plain, ok := t.attributes(as, request, phase)
			if !ok || !called(as.Plugin(), phase, plain.operation) || late() {
				continue
			}
			result, thrown := t.call(as, plain.record(), phase)
			if thrown != nil {
				as = t.Plugin()
				continue
			}
			if acted(result) == "" {
				continue
			}
			for _, each := range of(h, request) {
				varied, ok := t.attributes(h, request, phase)
				if !ok || !each.alter(&varied) || !called(h.Plugin(), phase, varied.operation) {
					continue
				}
				result, thrown := t.call(h, varied.record(), phase)
				if thrown != nil {
					h = t.Plugin()
					continue
				}
				t.Reached()
				if what := did(result); what != "" && !told[each.what] {
					told[each.what] = true
					t.Errorf("%s (%s), %s: in the %s phase the plugin %s", request, varied, each.what, phase, what)
				}
			}
		}
	}
}

// subresources makes requests to subresources of requests to a resource, but not to
// those that are known.
func subresources(known []string) []variation {
	all := []struct {
		name  string
		alter func(*fields) bool
	}{
		{"status", changes},
		{"scale", asScale},
		{"binding", asBinding},
		{"exec", asExec},
		{"bogus", func(f *fields) bool { return f.operation != admission.Delete }},
	}
	var variations []variation
	for _, each := range all {
		if slices.Contains(known, each.name) {
			continue
		}
		variations = append(variations, variation{fmt.Sprintf("as a request to its subresource %q", each.name), func(f *fields) bool {
			if !each.alter(f) {
				return false
			}
			f.subresource = each.name
			return true
		}})
	}
	return variations
}

// changes reports whether a request creates or updates: the whole object is the body.
func changes(f *fields) bool {
	return f.operation == admission.Create || f.operation == admission.Update
}

func asScale(f *fields) bool {
	if !changes(f) {
		return false
	}
	scale := func(object runtime.Object) runtime.Object {
		if object == nil {
			return nil
		}
		return &autoscalingv1.Scale{ObjectMeta: nameOf(object), Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	}
	f.kind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	f.object, f.old = scale(f.object), scale(f.old)
	return true
}

func asBinding(f *fields) bool {
	if f.operation != admission.Create {
		return false
	}
	f.kind = corev1.SchemeGroupVersion.WithKind("Binding")
	f.object = &corev1.Binding{ObjectMeta: nameOf(f.object), Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
	return true
}

func asExec(f *fields) bool {
	f.operation, f.kind = admission.Connect, corev1.SchemeGroupVersion.WithKind("PodExecOptions")
	f.object, f.old = &corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, nil
	f.options, f.dryRun = nil, false
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

// unknownResource makes a request to a custom resource of a request.
func (t *Trial) unknownResource(h *harness.Harness, request framework.Request) variation {
	return t.foreign(h, request, schema.GroupVersionResource{Group: foreignGroup, Version: "v1", Resource: "widgets"}, "Widget")
}

// foreign makes a request to a custom resource of a request, with the same content.
func (t *Trial) foreign(h *harness.Harness, request framework.Request, resource schema.GroupVersionResource, kind string) variation {
	what := fmt.Sprintf("as a request to %s", resource.GroupResource())
	return variation{what, func(f *fields) bool {
		if f.operation == admission.Connect || f.subresource != "" {
			return false
		}
		f.resource, f.kind = resource, resource.GroupVersion().WithKind(kind)
		object, old := t.loosened(h, request, f.kind)
		if f.object != nil {
			f.object = object
		}
		if f.old != nil {
			f.old = old
		}
		return true
	}}
}
