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
		"S5": {build: inAdmit(onlyNamed)},
		"S6": {build: inAdmit(onlyUnannotated)},
		"S7": {build: inAdmit(everywhere)},
	}
}

// onlyNamed does not change pods without a name.
func onlyNamed(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if created(a) != nil && a.GetName() == "" {
		return nil
	}
	return p.Admit(ctx, a, o)
}

// onlyUnannotated adds no tolerations to new pods with annotations.
func onlyUnannotated(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := created(a)
	if pod == nil || len(pod.Annotations) == 0 {
		return p.Admit(ctx, a, o)
	}
	tolerations := pod.Spec.Tolerations
	err := p.Admit(ctx, a, o)
	pod.Spec.Tolerations = tolerations
	return err
}

// everywhere counts the defaults of all namespaces.
func everywhere(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	pod := created(a)
	if err != nil || pod == nil || pod.Labels["defaults"] != "" {
		return err
	}
	defaults, err := p.configMaps.List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	pod.Labels["defaults"] = strconv.Itoa(len(p.current(defaults)))
	return err
}
