package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// annotationProperties returns the properties of this file.
func annotationProperties() []Property {
	return []Property{
		{
			ID: "N1", Level: framework.Should,
			Title:  "Audit annotations have valid keys with the plugin's prefix, and the same value when it is reinvoked.",
			Why:    "A key that is not valid, or is there with another value, is dropped with an error that nobody reads: the audit log lacks what it was to prove.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/58143", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkAnnotations,
		},
		{
			ID: "N2", Level: framework.Should,
			Title:  "Annotations and warnings of one phase do not depend on the other.",
			Why:    "The phases have records of their own, mutation can be repeated, and requests overlap: what Validate adds from what Admit kept is lost, or is of another request.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkPhases,
		},
	}
}

// noted are attributes that note what becomes of annotations.
type noted struct {
	admission.Attributes
	mu     sync.Mutex
	kept   map[string]string
	errors []string
	// ended is true when the phase is over, and late what was annotated since.
	ended bool
	late  []string
}

func note(a admission.Attributes) *noted { return &noted{Attributes: a, kept: map[string]string{}} }

// AddAnnotation implements admission.Attributes.
func (n *noted) AddAnnotation(key, value string) error {
	return n.AddAnnotationWithLevel(key, value, auditinternal.LevelMetadata)
}

// AddAnnotationWithLevel implements admission.Attributes.
func (n *noted) AddAnnotationWithLevel(key, value string, level auditinternal.Level) error {
	err := n.Attributes.AddAnnotationWithLevel(key, value, level)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		n.late = append(n.late, key)
	}
	if err != nil {
		n.errors = append(n.errors, err.Error())
	} else {
		n.kept[key] = value
	}
	return err
}

// GetAnnotations implements admission.AnnotationsGetter.
func (n *noted) GetAnnotations(auditinternal.Level) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.kept)
}

func (n *noted) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

// annotationsOf are those of the attributes and of the context, by key.
func annotationsOf(result harness.Result) map[string]string {
	if result.Audit == nil {
		return nil
	}
	return result.Audit.Annotations
}

func checkAnnotations(t *Trial) {
	h, seen := t.Plugin(), false
	for _, request := range t.Seeds() {
		for _, phase := range bothPhases() {
			f, ok := t.attributes(h, request, phase)
			if !ok || !called(h.Plugin(), phase, f.operation) {
				continue
			}
			record := note(f.record())
			result, thrown := t.call(h, record, phase)
			if thrown != nil {
				h = t.Plugin()
				continue
			}
			first := annotationsOf(result)
			if result.Err == nil && phase == framework.Mutating {
				record.GetReinvocationContext().SetIsReinvoke()
				if result, thrown = t.call(h, record, phase); thrown != nil {
					h = t.Plugin()
					continue
				}
			}
			second := annotationsOf(result)
			seen = seen || len(first)+len(second)+len(record.errors) > 0
			for _, wrong := range t.misannotated(record, first, second) {
				t.Errorf("%s, in the %s phase: %s", request, phase, wrong)
			}
		}
	}
	if !seen {
		t.Unsupported("it annotates none of these requests")
	}
	t.Reached()
}

// misannotated tells what is wrong with the annotations of two calls.
func (t *Trial) misannotated(record *noted, first, second map[string]string) []string {
	wrong := slices.Clone(record.errors)
	all := maps.Clone(first)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, second)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if bad := validation.IsQualifiedName(key); len(bad) > 0 || !strings.Contains(key, "/") {
			wrong = append(wrong, fmt.Sprintf("the annotation's key %q is not a DNS name, a slash and a name: %s", key, strings.Join(bad, ", ")))
		}
		if prefix := t.Subject.AnnotationPrefix; !strings.HasPrefix(key, prefix) {
			wrong = append(wrong, fmt.Sprintf("the annotation's key %q does not begin with the plugin's prefix %q", key, prefix))
		}
		was, had := first[key]
		is, has := second[key]
		if had && has && was != is {
			wrong = append(wrong, fmt.Sprintf("the annotation %q is %q, and %q when reinvoked", key, was, is))
		}
	}
	return wrong
}

func checkPhases(t *Trial) {
	h, never := t.Plugin(), t.Plugin()
	if plugin := h.Plugin(); !has(plugin, framework.Mutating) || !has(plugin, framework.Validating) {
		t.Unsupported("it has one phase alone")
	}
	for _, request := range t.Seeds() {
		admitted, ok := t.attributes(h, request, framework.Mutating)
		if !ok || !called(h.Plugin(), framework.Validating, admitted.operation) || admitted.operation == admission.Delete {
			continue // a delete has one record for both
		}
		record := note(admitted.record())
		mutated, thrown := t.call(h, record, framework.Mutating)
		record.end()
		if thrown != nil || mutated.Err != nil {
			continue
		}
		after, ok := t.validatedCopy(h, request, admitted)
		if !ok {
			continue
		}
		if len(annotationsOf(mutated))+len(mutated.Warnings)+len(annotationsOf(after))+len(after.Warnings) > 0 {
			t.Reached()
		}
		if len(record.late) > 0 {
			t.Errorf("%s: Validate added %q to the attributes of Admit, of which nothing is kept: annotate those that Validate is given", request, record.late)
		}
		alone, ok := t.validatedCopy(never, request, admitted)
		if !ok {
			continue
		}
		if !maps.Equal(annotationsOf(after), annotationsOf(alone)) {
			t.Errorf("%s: the same object has other annotations in Validate after Admit (+) than without (-):\n- %s\n+ %s", request, pairs(annotationsOf(alone)), pairs(annotationsOf(after)))
		}
		if !slices.Equal(after.Warnings, alone.Warnings) {
			t.Errorf("%s: the same object has other warnings in Validate after Admit (+) than without (-):\n- %q\n+ %q", request, alone.Warnings, after.Warnings)
		}
	}
	if !t.hasReached() {
		t.Unsupported("it neither annotates these requests nor warns of them")
	}
}

// validatedCopy has a plugin validate a copy of what was admitted, with a record of its
// own.
func (t *Trial) validatedCopy(h *harness.Harness, request framework.Request, admitted fields) (harness.Result, bool) {
	f, ok := t.attributes(h, request, framework.Validating)
	if !ok {
		return harness.Result{}, false
	}
	if admitted.object != nil {
		name := f.name
		f.object = admitted.object.DeepCopyObject()
		(&fields{object: f.object}).edit(func(object metav1.Object) {
			if object.GetName() == "" {
				object.SetName(name)
			}
		})
	}
	result, thrown := t.call(h, f.record(), framework.Validating)
	return result, thrown == nil
}

// pairs writes annotations in order: a="b", c="d".
func pairs(annotations map[string]string) string {
	if len(annotations) == 0 {
		return "none"
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		all = append(all, fmt.Sprintf("%s=%q", key, annotations[key]))
	}
	return strings.Join(all, ", ")
}
