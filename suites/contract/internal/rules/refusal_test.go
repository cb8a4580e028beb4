package rules_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
)

// answerMutants returns the broken plugins for refusal.go, annotation.go and dryrun.go.
func answerMutants() map[string]mutant {
	return map[string]mutant{
		// It returns a plain error.
		"E1": refuses(func(_ admission.Attributes, reason string) error { return errors.New(reason) }),
		// It names another object than that of the request.
		"E2": refuses(func(_ admission.Attributes, reason string) error {
			return apierrors.NewForbidden(corev1.Resource("nodes"), "elsewhere", errors.New(reason))
		}),
		// It omits an argument of the format.
		"E3": refuses(func(a admission.Attributes, reason string) error {
			return admission.NewForbidden(a, fmt.Errorf("%s of %s", reason, "%!s(MISSING)"))
		}),
		"E4": {build: inAdmit(writesEarly)},
		// It uses the prefix of another plugin.
		"N1": validates(func(_ *sound, a admission.Attributes) {
			if plainPod(a) {
				_ = a.AddAnnotation("other.example.com/seen", "true")
			}
		}),
		"N2": {build: func(p *sound) admission.Interface { return &remembering{sound: p} }},
		// It also writes in a dry run.
		"D1": sees(func(a admission.Attributes) admission.Attributes { return notDry{a} }),
		// It does not validate dry runs.
		"D2": {build: inValidate(lenient)},
	}
}

// refusing refuses with another error.
type refusing struct {
	*sound
	as func(a admission.Attributes, reason string) error
}

func (r *refusing) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := r.sound.Validate(ctx, a, o); err != nil {
		if pod, ok := a.GetObject().(*corev1.Pod); ok && pod.Labels[forbiddenMark] == "true" {
			return r.as(a, "the pod is forbidden")
		}
		return err
	}
	return nil
}

func refuses(as func(a admission.Attributes, reason string) error) mutant {
	return mutant{build: func(p *sound) admission.Interface { return &refusing{p, as} }}
}

// writesEarly writes in Admit, before Validate can refuse.
func writesEarly(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	if pod := created(a); pod != nil && err == nil {
		return p.note(ctx, a, pod.Labels[teamLabel])
	}
	return err
}

// remembering keeps which pods Admit has seen, and annotates them in Validate.
type remembering struct {
	*sound
	admitted sync.Map
}

func (r *remembering) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := r.sound.Admit(ctx, a, o)
	if err == nil && plainPod(a) && a.GetOperation() == admission.Create {
		r.admitted.Store(a.GetNamespace()+"/"+a.GetName(), true)
	}
	return err
}

func (r *remembering) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if _, ok := r.admitted.Load(a.GetNamespace() + "/" + a.GetName()); ok && plainPod(a) && a.GetOperation() == admission.Create {
		if err := a.AddAnnotation(soundPrefix+"admitted", "true"); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	return r.sound.Validate(ctx, a, o)
}

// notDry hides that a request is a dry run.
type notDry struct{ admission.Attributes }

func (notDry) IsDryRun() bool { return false }

// lenient does not validate dry runs.
func lenient(ctx context.Context, l *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.IsDryRun() {
		return nil
	}
	return l.Validate(ctx, a, o)
}
