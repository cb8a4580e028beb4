package rules_test

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// fragileMutants returns the plugins that panic, and those that act on foreign resources.
func fragileMutants() map[string]mutant {
	return map[string]mutant{
		// It uses the old object of a delete without checking for nil.
		"P1": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetOperation() == admission.Delete && a.GetOldObject() == nil {
				_ = a.GetOldObject().GetObjectKind()
			}
		}),
		// It expects an annotation of each pod that it has changed.
		"P1 after Admit": validates(func(p *sound, a admission.Attributes) {
			if pod := created(a); pod != nil && len(pod.Spec.Tolerations) > 0 && pod.Annotations == nil {
				_ = strings.Split("", "")[1]
			}
		}),
		// It asserts the type of the object without a check.
		"P2": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetObject() != nil {
				_ = a.GetObject().(*corev1.Pod)
			}
		}),
		// It ignores the subresource.
		"P3": sees(func(a admission.Attributes) admission.Attributes { return wholeResource{a} }),
		// It panics if the object has the name of its namespace.
		"P4": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetName() == a.GetNamespace() {
				_ = strings.Split(a.GetName(), "/")[1]
			}
		}),
		// It uses the user without checking for nil.
		// It does nothing without ObjectInterfaces.
		"P6": {build: inValidate(withInterfaces)},
		// It asserts that a create has CreateOptions.
		"P7": validates(func(_ *sound, a admission.Attributes) {
			if a.GetOperation() == admission.Create {
				_ = a.GetOperationOptions().(*metav1.CreateOptions)
			}
		}),
		// It compares the name of the resource without the group.
		"S1": sees(func(a admission.Attributes) admission.Attributes { return anyGroup{a} }),
	}
}

// plainPod reports whether a request is for pods, without a subresource.
func plainPod(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == corev1.Resource("pods") && a.GetSubresource() == ""
}

// validating is sound, and does something before Validate.
type validating struct {
	*sound
	first func(*sound, admission.Attributes)
}

func (v *validating) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	v.first(v.sound, a)
	return v.sound.Validate(ctx, a, o)
}

func validates(first func(*sound, admission.Attributes)) mutant {
	return mutant{build: func(p *sound) admission.Interface { return &validating{p, first} }}
}

// seeing is sound with changed attributes.
type seeing struct {
	*sound
	as func(admission.Attributes) admission.Attributes
}

func (s *seeing) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return s.sound.Admit(ctx, s.as(a), o)
}

func (s *seeing) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return s.sound.Validate(ctx, s.as(a), o)
}

func sees(as func(admission.Attributes) admission.Attributes) mutant {
	return mutant{build: func(p *sound) admission.Interface { return &seeing{p, as} }}
}

// wholeResource hides the subresource, except for evictions.
type wholeResource struct{ admission.Attributes }

func (w wholeResource) GetSubresource() string {
	if w.Attributes.GetSubresource() == "eviction" {
		return "eviction"
	}
	return ""
}

// anyGroup hides the group of pods.
type anyGroup struct{ admission.Attributes }

func (g anyGroup) GetResource() schema.GroupVersionResource {
	resource := g.Attributes.GetResource()
	if resource.Resource == "pods" {
		resource.Group = ""
	}
	return resource
}

// withInterfaces does nothing without ObjectInterfaces.
func withInterfaces(ctx context.Context, w *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if o == nil {
		return nil
	}
	return w.Validate(ctx, a, o)
}
