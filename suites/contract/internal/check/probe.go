package check

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Probe sends many requests to one plugin, and to a new one after a panic.
type Probe struct {
	t     *T
	make  func() *harness.Harness
	h     *harness.Harness
	fresh bool // a new plugin for each request
}

// Probe returns a Probe with plugins that a function makes.
func (t *T) Probe(plugin func() *harness.Harness) *Probe { return &Probe{t: t, make: plugin} }

// Send sends a request through both phases. It returns false if the plugin panics.
func (p *Probe) Send(request framework.Request) (harness.Result, bool) {
	if p.fresh || p.h == nil {
		p.h = p.make()
	}
	result, ok := p.t.Do(p.h, request)
	if !ok {
		p.h = nil // it may still hold a lock
	}
	return result, ok
}

// Admits reports whether the plugin admits a request.
func (p *Probe) Admits(request framework.Request) bool {
	result, ok := p.Send(request)
	return ok && result.Err == nil
}

// Refuses reports whether the plugin refuses a request.
func (p *Probe) Refuses(request framework.Request) bool {
	result, ok := p.Send(request)
	return ok && result.Err != nil
}

// Confirmed returns what find finds with one plugin for all requests, if it finds something with new plugins too: a
// plugin can depend on the requests that it had before.
func (p *Probe) Confirmed(find func(*Probe) string) string {
	if find(p) == "" {
		return ""
	}
	return find(&Probe{t: p.t, make: p.make, fresh: true})
}
