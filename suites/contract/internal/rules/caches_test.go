package rules_test

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
)

// cacheMutants returns the broken plugins for caches.go and context.go.
func cacheMutants() map[string]mutant {
	return map[string]mutant{
		"R1": {build: func(p *sound) admission.Interface { return &eager{p} }},
		"X1": {build: inValidate(contextless)},
	}
}

// eager does not wait for its caches.
type eager struct{ *sound }

func (p *eager) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.synced = nil
}

// contextless calls the authorizer with a new context.
func contextless(_ context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.Validate(context.Background(), a, o)
}
