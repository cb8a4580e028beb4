package rules_test

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
)

// unrelatedMutants returns the broken plugins for unrelated.go.
func unrelatedMutants() map[string]mutant {
	return map[string]mutant{
		"S5": {build: func(p *sound) admission.Interface { return onlyNamed{p} }},
		"S6": {build: func(p *sound) admission.Interface { return onlyUnannotated{p} }},
		"S7": {build: func(p *sound) admission.Interface { return everywhere{p} }},
	}
}

// onlyNamed does not change pods without a name.
type onlyNamed struct{ *sound }

func (p onlyNamed) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if created(a) != nil && a.GetName() == "" {
		return nil
	}
	return p.sound.Admit(ctx, a, o)
}

// onlyUnannotated adds no tolerations to new pods with annotations.
type onlyUnannotated struct{ *sound }

func (p onlyUnannotated) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := created(a)
	if pod == nil || len(pod.Annotations) == 0 {
		return p.sound.Admit(ctx, a, o)
	}
	tolerations := pod.Spec.Tolerations
	err := p.sound.Admit(ctx, a, o)
	pod.Spec.Tolerations = tolerations
	return err
}

// everywhere counts the defaults of all namespaces.
type everywhere struct{ *sound }

func (p everywhere) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Admit(ctx, a, o)
	pod := created(a)
	if err != nil || pod == nil || pod.Labels["defaults"] != "" {
		return err
	}
	defaults, err := p.configMaps.List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	pod.Labels["defaults"] = strconv.Itoa(len(defaults))
	return err
}
