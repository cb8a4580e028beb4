package rules_test

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// panicMutants returns the broken plugins of panic.go, error.go, annotation.go,
// dryrun.go and scope.go.
func panicMutants() map[string]mutant {
	all := fragileMutants()
	maps.Copy(all, answerMutants())
	return all
}

// fragileMutants returns those that panic, and those that act where they should not.
func fragileMutants() map[string]mutant {
	return map[string]mutant{
		// It looks at the old object of a delete without asking whether there is one.
		"P1": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetOperation() == admission.Delete && a.GetOldObject() == nil {
				_ = a.GetOldObject().GetObjectKind()
			}
		}),
		// It asserts the type unchecked.
		"P2": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetObject() != nil {
				_ = a.GetObject().(*corev1.Pod)
			}
		}),
		// It asks for the resource alone.
		"P3": sees(func(a admission.Attributes) admission.Attributes { return wholeResource{a} }),
		// It counts on a namespace not to be called as what is in it.
		"P4": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) && a.GetName() == a.GetNamespace() {
				_ = strings.Split(a.GetName(), "/")[1]
			}
		}),
		// It asks nobody for the name.
		"P5": validates(func(_ *sound, a admission.Attributes) { _ = a.GetUserInfo().GetName() }),
		// It does its work only for servers that have interfaces.
		"P6": {build: func(p *sound) admission.Interface { return &withInterfaces{p} }},
		// It takes the options of each create for those of a POST.
		"P7": validates(func(_ *sound, a admission.Attributes) {
			if a.GetOperation() == admission.Create {
				_ = a.GetOperationOptions().(*metav1.CreateOptions)
			}
		}),
		// It goes by the resource's name without the group.
		"S1": sees(func(a admission.Attributes) admission.Attributes { return anyGroup{a} }),
	}
}

// plainPod reports whether a request is to pods themselves.
func plainPod(a admission.Attributes) bool {
	return a.GetResource().GroupResource() == corev1.Resource("pods") && a.GetSubresource() == ""
}

// validating is a plugin that does something before it validates.
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

// seeing is a plugin that sees other attributes.
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

// wholeResource hides the subresource.
type wholeResource struct{ admission.Attributes }

func (wholeResource) GetSubresource() string { return "" }

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
type withInterfaces struct{ *sound }

func (w *withInterfaces) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if o == nil {
		return nil
	}
	return w.sound.Validate(ctx, a, o)
}
