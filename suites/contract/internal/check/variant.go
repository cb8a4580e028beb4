package check

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Variant is an unusual form of a request.
type Variant struct {
	// Name describes the variant in messages: "without a user".
	Name string
	// Apply changes the attributes. It returns false if there is no such form of the
	// request.
	Apply func(*Attributes) bool
}

// Variants returns variants of a request in a phase.
type Variants func(h *harness.Harness, request framework.Request, phase framework.Phase) []Variant

// SameVariants returns the same variants for every request.
func SameVariants(variants ...Variant) Variants {
	return func(*harness.Harness, framework.Request, framework.Phase) []Variant { return variants }
}

// MustNotPanic calls a plugin with each variant of each request, in each phase in which an API
// server would call the plugin. It reports panics as failures, and returns the number of calls.
func (t *T) MustNotPanic(variants Variants) int {
	var seen panics
	calls, h, late := 0, t.Plugin(), t.HalfBudget()
	for _, request := range t.Requests() {
		for _, phase := range Phases() {
			for _, variant := range variants(h, request, phase) {
				varied, ok := t.AttributesFor(h, request, phase)
				if !ok || !variant.Apply(&varied) || !WouldCall(h.Plugin(), phase, varied.Operation) {
					continue
				}
				if calls > 0 && late() {
					t.Logf("stopped after %d calls, which took half of the budget", calls)
					seen.report(t)
					return calls
				}
				calls++
				if _, thrown := t.Call(h, varied.Record(), phase); thrown != nil {
					seen.add(thrown, fmt.Sprintf("%s (%s), %s", request, varied, variant.Name))
					h = t.Plugin() // the plugin that panicked may still hold a lock
				}
			}
		}
	}
	seen.report(t)
	return calls
}

// RequestsMustNotPanic sends each request through both phases: Validate gets what Admit made of it.
func (t *T) RequestsMustNotPanic() {
	var seen panics
	for _, request := range t.Requests() {
		_, err := t.Plugin().Run(t.Context(), request)
		if thrown, ok := AsPanic(err); ok {
			seen.add(thrown, request.String())
		}
	}
	seen.report(t)
}

// panics collects panics, to report each place in the code once.
type panics struct {
	frames []string
	first  map[string]string
	more   map[string]int
}

func (p *panics) add(thrown *harness.PanicError, request string) {
	if p.first == nil {
		p.first, p.more = map[string]string{}, map[string]int{}
	}
	if _, known := p.first[thrown.Frame]; known {
		p.more[thrown.Frame]++
		return
	}
	p.frames = append(p.frames, thrown.Frame)
	p.first[thrown.Frame] = fmt.Sprintf("%v\n  request: %s", thrown, request)
}

func (p *panics) report(t *T) {
	for _, frame := range p.frames {
		text := p.first[frame]
		if more := p.more[frame]; more > 0 {
			text += fmt.Sprintf("\n  and %d more requests panic there", more)
		}
		t.Errorf("%s", text)
	}
}

// Unstructured returns the objects of a request as unstructured objects of a kind.
func (t *T) Unstructured(h *harness.Harness, request framework.Request, kind schema.GroupVersionKind) (object, old runtime.Object) {
	if a, err := h.Attributes(request.AsUnstructured(), framework.Mutating); err == nil {
		return withKind(a.GetObject(), kind), withKind(a.GetOldObject(), kind)
	}
	// The type has no external form: use the metadata.
	a, ok := t.AttributesFor(h, request, framework.Mutating)
	if !ok {
		return nil, nil
	}
	return fromMetadata(a.Object, kind), fromMetadata(a.OldObject, kind)
}

// withKind sets the kind of an unstructured object.
func withKind(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	if loose, ok := object.(*unstructured.Unstructured); ok && loose != nil {
		loose.SetGroupVersionKind(kind)
		return loose
	}
	return nil
}

// fromMetadata returns an unstructured object of a kind with the metadata of an object.
func fromMetadata(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	if object == nil {
		return nil
	}
	loose := &unstructured.Unstructured{Object: map[string]any{}}
	loose.SetGroupVersionKind(kind)
	if accessor, err := meta.Accessor(object); err == nil {
		loose.SetName(accessor.GetName())
		loose.SetNamespace(accessor.GetNamespace())
		loose.SetLabels(accessor.GetLabels())
		loose.SetAnnotations(accessor.GetAnnotations())
	}
	return loose
}

// MetadataOnly returns what a metadata client sees of an object.
func MetadataOnly(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(kind)
	if accessor, err := meta.Accessor(object); err == nil {
		partial.Name, partial.Namespace = accessor.GetName(), accessor.GetNamespace()
		partial.Labels, partial.Annotations = accessor.GetLabels(), accessor.GetAnnotations()
	}
	return partial
}

// OfOtherType returns an object of a different type with the same name.
func OfOtherType(object runtime.Object) runtime.Object {
	named := metav1.ObjectMeta{}
	if accessor, err := meta.Accessor(object); err == nil {
		named.Name, named.Namespace = accessor.GetName(), accessor.GetNamespace()
	}
	if _, ok := object.(*corev1.ConfigMap); ok {
		return &corev1.Pod{ObjectMeta: named}
	}
	return &corev1.ConfigMap{ObjectMeta: named}
}
