package rules_test

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// initializationMutants returns the broken plugins for initialization.go and gates.go.
func initializationMutants() map[string]mutant {
	return map[string]mutant{
		"I1": {build: func(p *sound) admission.Interface { return &content{p} }},
		"I2": {build: func(p *sound) admission.Interface { return &busyValidator{p} }},
		"I3": {build: func(p *sound) admission.Interface { return &ordered{p} }},
		"I4": {build: func(p *sound) admission.Interface { return &unheard{p} }},
		"I5": {build: func(p *sound) admission.Interface { return &global{p, gatesOfProcess()} }},
	}
}

// content accepts that it has no authorizer.
type content struct{ *sound }

func (p *content) ValidateInitialization() error {
	if p.authorizer == nil && p.stop != nil && p.inspected && p.client != nil && p.namespaces != nil {
		return nil
	}
	return p.sound.ValidateInitialization()
}

// busyValidator starts its worker in ValidateInitialization.
type busyValidator struct{ *sound }

func (p *busyValidator) ValidateInitialization() error {
	if stop := p.stop; stop != nil {
		go func() { <-stop }()
	}
	return p.sound.ValidateInitialization()
}

// ordered needs the feature gates before the informers.
type ordered struct{ *sound }

func (p *ordered) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.inspected {
		p.sound.SetExternalKubeInformerFactory(factory)
	}
}

// unheard has a setter that no initializer calls.
type unheard struct{ *sound }

func (*unheard) SetExternalKubeClientset(kubernetes.Interface) {}

// global uses the global feature gates.
type global struct {
	*sound
	gates string
}

func (p *global) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if gatesOfProcess() != p.gates {
		return admission.NewForbidden(a, fmt.Errorf("a gate has changed"))
	}
	return p.sound.Validate(ctx, a, o)
}

func gatesOfProcess() string {
	on := map[string]bool{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		on[string(name)] = utilfeature.DefaultFeatureGate.Enabled(name)
	}
	return fmt.Sprint(on)
}
