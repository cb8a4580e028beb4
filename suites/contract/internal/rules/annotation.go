package rules

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
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// annotationRules returns the rules for audit annotations and warnings.
func annotationRules() []check.Rule {
	return []check.Rule{
		{
			ID: "N1", Name: "audit-annotations-are-valid", Level: framework.Should,
			Title:  "Audit annotations have valid keys with the prefix of the plugin, and the same value after a reinvocation.",
			Why:    "The API server drops an annotation with an invalid key, or with a second value, and only logs an error. The audit log then lacks the annotation.",
			Fix:    "Use a key with the prefix of the plugin, and set it once with a value that does not change.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/58143", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkAnnotations,
		},
		{
			ID: "N2", Name: "phases-are-independent", Level: framework.Should,
			Title:  "Annotations and warnings of one phase do not depend on the other phase.",
			Why:    "Each phase has its own attributes, Admit can be called again, and requests run at the same time. If Validate uses state that Admit saved in the plugin, the annotation can be lost or belong to another request.",
			Fix:    "Compute annotations and warnings of each phase from its own attributes.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkPhases,
		},
	}
}

// recordedAttributes are attributes that record annotations and their errors.
type recordedAttributes struct {
	admission.Attributes
	mu     sync.Mutex
	kept   map[string]string
	errors []string
	// ended is true after the phase, and late has the keys that were added since then.
	ended bool
	late  []string
}

func recordAnnotations(a admission.Attributes) *recordedAttributes {
	return &recordedAttributes{Attributes: a, kept: map[string]string{}}
}

// AddAnnotation implements admission.Attributes.
func (n *recordedAttributes) AddAnnotation(key, value string) error {
	return n.AddAnnotationWithLevel(key, value, auditinternal.LevelMetadata)
}

// AddAnnotationWithLevel implements admission.Attributes.
func (n *recordedAttributes) AddAnnotationWithLevel(key, value string, level auditinternal.Level) error {
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
func (n *recordedAttributes) GetAnnotations(auditinternal.Level) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.kept)
}

func (n *recordedAttributes) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

// annotationsOf returns the annotations of the attributes and of the context, by key.
func annotationsOf(result harness.Result) map[string]string {
	if result.Audit == nil {
		return nil
	}
	return result.Audit.Annotations
}

func checkAnnotations(t *check.T) {
	h, seen := t.Plugin(), false
	for _, request := range t.Requests() {
		for _, phase := range check.Phases() {
			f, ok := t.AttributesFor(h, request, phase)
			if !ok || !check.WouldCall(h.Plugin(), phase, f.Operation) {
				continue
			}
			record := recordAnnotations(f.Record())
			result, thrown := t.Call(h, record, phase)
			if thrown != nil {
				h = t.Plugin()
				continue
			}
			first := annotationsOf(result)
			if result.Err == nil && phase == framework.Mutating {
				record.GetReinvocationContext().SetIsReinvoke()
				if result, thrown = t.Call(h, record, phase); thrown != nil {
					h = t.Plugin()
					continue
				}
			}
			second := annotationsOf(result)
			seen = seen || len(first)+len(second)+len(record.errors) > 0
			for _, wrong := range misannotated(t, record, first, second) {
				t.Errorf("%s, in the %s phase: %s", request, phase, wrong)
			}
		}
	}
	if !seen {
		t.Unsupported("the plugin adds no annotations to these requests")
	}
	t.Reached()
}

// misannotated returns what is wrong with the annotations of two calls.
func misannotated(t *check.T, record *recordedAttributes, first, second map[string]string) []string {
	wrong := slices.Clone(record.errors)
	all := maps.Clone(first)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, second)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if bad := validation.IsQualifiedName(key); len(bad) > 0 || !strings.Contains(key, "/") {
			wrong = append(wrong, fmt.Sprintf("annotation key %q is not a DNS name, a slash and a name: %s", key, strings.Join(bad, ", ")))
		}
		if prefix := t.Subject.AnnotationPrefix; !strings.HasPrefix(key, prefix) {
			wrong = append(wrong, fmt.Sprintf("annotation key %q does not have the prefix %q", key, prefix))
		}
		was, had := first[key]
		is, has := second[key]
		if had && has && was != is {
			wrong = append(wrong, fmt.Sprintf("annotation %q is %q, and %q after a reinvocation", key, was, is))
		}
	}
	return wrong
}

func checkPhases(t *check.T) {
	h, never := t.Plugin(), t.Plugin()
	if plugin := h.Plugin(); !check.HasPhase(plugin, framework.Mutating) || !check.HasPhase(plugin, framework.Validating) {
		t.Unsupported("the plugin has only one phase")
	}
	for _, request := range t.Requests() {
		admitted, ok := t.AttributesFor(h, request, framework.Mutating)
		if !ok || !check.WouldCall(h.Plugin(), framework.Validating, admitted.Operation) || admitted.Operation == admission.Delete {
			continue // a delete has the same record in both phases
		}
		record := recordAnnotations(admitted.Record())
		mutated, thrown := t.Call(h, record, framework.Mutating)
		record.end()
		if thrown != nil || mutated.Err != nil {
			continue
		}
		after, ok := validatedCopy(t, h, request, admitted)
		if !ok {
			continue
		}
		if len(annotationsOf(mutated))+len(mutated.Warnings)+len(annotationsOf(after))+len(after.Warnings) > 0 {
			t.Reached()
		}
		if len(record.late) > 0 {
			t.Errorf("%s: Validate added %q to the attributes of Admit, where it is lost. want: it annotates its own attributes", request, record.late)
		}
		alone, ok := validatedCopy(t, never, request, admitted)
		if !ok {
			continue
		}
		if !maps.Equal(annotationsOf(after), annotationsOf(alone)) {
			t.Errorf("%s: for the same object, the annotations of Validate differ after Admit (+) and without Admit (-):\n- %s\n+ %s", request, pairs(annotationsOf(alone)), pairs(annotationsOf(after)))
		}
		if !slices.Equal(after.Warnings, alone.Warnings) {
			t.Errorf("%s: for the same object, the warnings of Validate differ after Admit (+) and without Admit (-):\n- %q\n+ %q", request, alone.Warnings, after.Warnings)
		}
	}
	if !t.HasReached() {
		t.Unsupported("the plugin adds neither annotations nor warnings to these requests")
	}
}

// validatedCopy calls Validate for a copy of the object of Admit, with a new record.
func validatedCopy(t *check.T, h *harness.Harness, request framework.Request, admitted check.Attributes) (harness.Result, bool) {
	f, ok := t.AttributesFor(h, request, framework.Validating)
	if !ok {
		return harness.Result{}, false
	}
	if admitted.Object != nil {
		name := f.Name
		f.Object = admitted.Object.DeepCopyObject()
		(&check.Attributes{Object: f.Object}).EditMetadata(func(object metav1.Object) {
			if object.GetName() == "" {
				object.SetName(name)
			}
		})
	}
	result, thrown := t.Call(h, f.Record(), framework.Validating)
	return result, thrown == nil
}

// pairs returns annotations as sorted text: a="b", c="d".
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
