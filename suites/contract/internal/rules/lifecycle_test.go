package rules_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
)

// lifecycleMutants returns the broken plugins for lifecycle.go.
func lifecycleMutants() map[string]mutant {
	return map[string]mutant{
		"T1": {build: func(p *sound) admission.Interface { return &muddled{sound: p} }},
		"T2": {build: inAdmit(firstCome)},
		"L1": {build: func(p *sound) admission.Interface { return &endless{p} }},
	}
}

// muddled keeps state of one request in a field.
type muddled struct {
	*sound
	mu      sync.Mutex
	request int
}

func (p *muddled) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p.mu.Lock()
	p.request++
	ours := p.request
	p.mu.Unlock()
	for range 100 {
		runtime.Gosched() // about the time of a lookup
	}
	p.mu.Lock()
	current := p.request
	p.mu.Unlock()
	if current != ours {
		return admission.NewForbidden(a, fmt.Errorf("request %d is not %d", current, ours))
	}
	return p.sound.Admit(ctx, a, o)
}

// firstCome uses the first default that its lister returns.
func firstCome(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.Admit(ctx, a, o); err != nil {
		return err
	}
	pod, ours, _ := p.pod(a, a.GetObject())
	if !ours || pod == nil || a.GetOperation() != admission.Create {
		return nil
	}
	defaults, err := p.configMaps.ConfigMaps(a.GetNamespace()).List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	defaults = p.current(defaults)
	if err == nil && len(defaults) > 0 && pod.Labels["first"] == "" {
		pod.Labels["first"] = defaults[0].Name
	}
	return nil
}

// endless starts a goroutine that never ends.
type endless struct{ *sound }

func (p *endless) SetDrainedNotification(stop <-chan struct{}) {
	p.sound.SetDrainedNotification(stop)
	go func() { <-make(chan struct{}) }()
}
