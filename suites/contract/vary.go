package contract

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// variation is one way in which a request is made odd.
type variation struct {
	// what tells of it: "without a user".
	what string
	// alter replaces fields, and returns false where it does not concern them.
	alter func(*fields) bool
}

// unvaried is a request as it is.
func unvaried() variation {
	return variation{"as it is", func(*fields) bool { return true }}
}

// mustNotPanic calls a plugin with each variation of each request, in the phases and
// for the operations for which an API server would. It returns the number of calls.
func (t *Trial) mustNotPanic(of func(h *harness.Harness, request framework.Request, phase framework.Phase) []variation) int {
	var seen panics
	calls, h, late := 0, t.Plugin(), t.halfTime()
	for _, request := range t.Seeds() {
		for _, phase := range bothPhases() {
			for _, each := range of(h, request, phase) {
				varied, ok := t.attributes(h, request, phase)
				if !ok || !each.alter(&varied) || !called(h.Plugin(), phase, varied.operation) {
					continue
				}
				if calls > 0 && late() {
					t.Logf("stopped after %d calls, which took half the budget", calls)
					seen.report(t)
					return calls
				}
				calls++
				if _, thrown := t.call(h, varied.record(), phase); thrown != nil {
					seen.add(thrown, fmt.Sprintf("%s (%s), %s", request, varied, each.what))
					h = t.Plugin() // one that has panicked may hold a lock
				}
			}
		}
	}
	seen.report(t)
	return calls
}

// always is what mustNotPanic takes where the variations are the same for all requests.
func always(variations ...variation) func(*harness.Harness, framework.Request, framework.Phase) []variation {
	return func(*harness.Harness, framework.Request, framework.Phase) []variation { return variations }
}

// panics are told once for each place.
type panics struct {
	frames []string
	first  map[string]string
	more   map[string]int
}

func (p *panics) add(thrown *harness.PanicError, asked string) {
	if p.first == nil {
		p.first, p.more = map[string]string{}, map[string]int{}
	}
	if _, known := p.first[thrown.Frame]; known {
		p.more[thrown.Frame]++
		return
	}
	p.frames = append(p.frames, thrown.Frame)
	p.first[thrown.Frame] = fmt.Sprintf("%v\n  asked: %s", thrown, asked)
}

func (p *panics) report(t *Trial) {
	for _, frame := range p.frames {
		text := p.first[frame]
		if more := p.more[frame]; more > 0 {
			text += fmt.Sprintf("\n  and %d more requests there", more)
		}
		t.Errorf("%s", text)
	}
}

// halfTime returns a function that reports whether half of what is left now of the
// trial's budget is used up: plugins that wait in each call cannot be asked all.
func (t *Trial) halfTime() func() bool {
	deadline, ok := t.Context().Deadline()
	if !ok {
		return func() bool { return false }
	}
	half := time.Now().Add(time.Until(deadline) / 2)
	return func() bool { return time.Now().After(half) }
}

// edit changes the metadata of the objects of a request. It returns false where there
// is none.
func (f *fields) edit(change func(metav1.Object)) bool {
	edited := false
	for _, object := range []runtime.Object{f.object, f.old} {
		if object == nil {
			continue
		}
		if accessor, err := meta.Accessor(object); err == nil {
			change(accessor)
			edited = true
		}
	}
	return edited
}

// loosened returns the fields of a request with unstructured objects of this kind.
func (t *Trial) loosened(h *harness.Harness, request framework.Request, kind schema.GroupVersionKind) (object, old runtime.Object) {
	if a, err := h.Attributes(request.AsUnstructured(), framework.Mutating); err == nil {
		return asKind(a.GetObject(), kind), asKind(a.GetOldObject(), kind)
	}
	// A type without an external form has its metadata.
	a, ok := t.attributes(h, request, framework.Mutating)
	if !ok {
		return nil, nil
	}
	return bare(a.object, kind), bare(a.old, kind)
}

// asKind gives an unstructured object a kind.
func asKind(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	if loose, ok := object.(*unstructured.Unstructured); ok && loose != nil {
		loose.SetGroupVersionKind(kind)
		return loose
	}
	return nil
}

// bare is an unstructured object of a kind with the name of another object.
func bare(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
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

// metadataOf is what a metadata client has of an object.
func metadataOf(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(kind)
	if accessor, err := meta.Accessor(object); err == nil {
		partial.Name, partial.Namespace = accessor.GetName(), accessor.GetNamespace()
		partial.Labels, partial.Annotations = accessor.GetLabels(), accessor.GetAnnotations()
	}
	return partial
}

// another is an object of quite another type, with the same name.
func another(object runtime.Object) runtime.Object {
	named := metav1.ObjectMeta{}
	if accessor, err := meta.Accessor(object); err == nil {
		named.Name, named.Namespace = accessor.GetName(), accessor.GetNamespace()
	}
	if _, ok := object.(*corev1.ConfigMap); ok {
		return &corev1.Pod{ObjectMeta: named}
	}
	return &corev1.ConfigMap{ObjectMeta: named}
}
