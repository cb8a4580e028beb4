package rules_test

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
)

// handlesMutants returns the broken plugins for handles.go and validate.go.
func handlesMutants() map[string]mutant {
	return map[string]mutant{
		// It admits everything.
		"G1": {build: func(p *sound) admission.Interface { return admitsAll{p} }},
		// It handles CONNECT, for which the Subject has no request.
		"G2": {build: func(p *sound) admission.Interface { return connects{p} }},
		"H1": {build: func(p *sound) admission.Interface { return handlesAnything{p} }},
		"H3": {build: inAdmit(refusesInAdmit)},
		"V1": {build: inValidate(annotatesInValidate)},
		"V2": {build: inValidate(refusesItsOwn)},
		"V3": {build: func(p *sound) admission.Interface { return refusesEarly{p} }},
		// It acts on services, for which the Subject has no request.
		"G3": {build: inAdmit(labelsServices)},
	}
}

// refusesEarly looks for the forbidden label of a new pod in Admit, and not again in Validate.
type refusesEarly struct{ *sound }

func (p refusesEarly) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Labels[forbiddenMark] == "true" {
		return admission.NewForbidden(a, errors.New("the pod is forbidden"))
	}
	return p.sound.Admit(ctx, a, o)
}

func (p refusesEarly) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Validate(ctx, a, o)
	if pod := created(a); pod != nil && pod.Labels[forbiddenMark] == "true" {
		return nil
	}
	return err
}

// labelsServices also labels services.
func labelsServices(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if service, ok := a.GetObject().(*corev1.Service); ok && a.GetOperation() == admission.Create && a.GetSubresource() == "" {
		service.Labels = withKey(service.Labels, teamLabel, "all")
	}
	return p.Admit(ctx, a, o)
}

// admitsAll admits what it should refuse.
type admitsAll struct{ *sound }

func (p admitsAll) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return exceptForbidden(p.sound.Admit(ctx, a, o))
}

func (p admitsAll) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return exceptForbidden(p.sound.Validate(ctx, a, o))
}

func exceptForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// connects also handles CONNECT.
type connects struct{ *sound }

func (p connects) Handles(operation admission.Operation) bool {
	return operation == admission.Connect || p.sound.Handles(operation)
}

// handlesAnything handles every operation except CONNECT, even those that do not exist.
type handlesAnything struct{ *sound }

func (handlesAnything) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// refusesInAdmit only refuses in Admit.
func refusesInAdmit(ctx context.Context, p *sound, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Create {
		return nil
	}
	if _, ours, err := p.pod(a, a.GetObject()); !ours {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	_, err := p.team(ctx, a)
	return err
}

// annotatesInValidate writes to the object that it validates.
func annotatesInValidate(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Validate(ctx, a, o)
	if pod := created(a); pod != nil {
		pod.Annotations = withKey(pod.Annotations, soundPrefix+"validated", "true")
	}
	return err
}

// refusesItsOwn refuses in Validate a team that it sets in Admit.
func refusesItsOwn(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Labels[teamLabel] == "red" {
		return admission.NewForbidden(a, errors.New("no pod can be of team red"))
	}
	return p.Validate(ctx, a, o)
}

// created returns the pod that a request creates; nil for other requests.
func created(a admission.Attributes) *corev1.Pod {
	if a.GetOperation() != admission.Create || a.GetResource().Resource != "pods" || a.GetSubresource() != "" {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}

// withKey returns a copy of a map with one more key.
func withKey(values map[string]string, key, value string) map[string]string {
	more := maps.Clone(values)
	if more == nil {
		more = map[string]string{}
	}
	more[key] = value
	return more
}
