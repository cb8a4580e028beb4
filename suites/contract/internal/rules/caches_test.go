package rules_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// cacheMutants returns the broken plugins for caches.go and context.go.
func cacheMutants() map[string]mutant {
	return map[string]mutant{
		"R1": {build: func(p *sound) admission.Interface { return &eager{p} }},
		"R2": {build: func(p *sound) admission.Interface { return &patient{sound: p} }},
		"X1": {build: func(p *sound) admission.Interface { return &contextless{p} }},
	}
}

// eager does not wait for its caches.
type eager struct{ *sound }

func (p *eager) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.synced = nil
}

// patient continues to wait for its caches after the request has ended.
type patient struct {
	*sound
	caches []cache.InformerSynced
}

func (p *patient) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.caches, p.synced = p.synced, nil
}

func (p *patient) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || a.GetOperation() == admission.Delete {
		return p.sound.Admit(ctx, a, o)
	}
	err := wait.PollUntilContextTimeout(context.WithoutCancel(ctx), syncPoll, syncWait, true, func(context.Context) (bool, error) {
		for _, synced := range p.caches {
			if !synced() {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	return p.sound.Admit(ctx, a, o)
}

// contextless calls the authorizer with a new context.
type contextless struct{ *sound }

func (p *contextless) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.sound.Validate(context.Background(), a, o)
}
