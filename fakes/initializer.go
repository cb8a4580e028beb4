package fakes

import (
	"k8s.io/apiserver/pkg/admission"
)

// Injection is one thing that was given to a plugin.
type Injection struct {
	// Interface is the interface by which the plugin asked: "WantsAuthorizer".
	Interface string
	// Method is the setter called.
	Method string
}

// Injector gives a plugin one thing, if it wants it.
type Injector struct{ name string }

// Inject is the Injector of plugins that have the interface W. Name is how logs and
// Skip call it.
func Inject[W any](name string, set func(W)) Injector { return Injector{name: name} }

// Name returns the Injector's name.
func (i Injector) Name() string { return i.name }

// Order is the order of injections.
type Order func(names []string) []string

// Upstream is the order of the API server's own initializers. The zero value means
// it too.
func Upstream() Order { return nil }

// Reverse is the opposite of Upstream.
func Reverse() Order { return nil }

// Shuffled is an order by a seed.
func Shuffled(seed uint64) Order { return nil }

// Initializer gives a plugin what an API server would give it, from a World, and
// records what it gave.
type Initializer struct{}

var _ admission.PluginInitializer = &Initializer{}

// NewInitializer returns an Initializer for every upstream Wants interface, and for
// those of the extra Injectors, which come after them.
func NewInitializer(w *World, extra ...Injector) *Initializer { return &Initializer{} }

// Strict has Err tell what Initialize would pass over in silence: an exported
// Set or Inspect method that nobody called, one that was called twice.
func (i *Initializer) Strict() *Initializer { return i }

// Skip leaves injections out, by name ("WantsAuthorizer"). An unknown name is an error of Err.
func (i *Initializer) Skip(names ...string) *Initializer { return i }

// InOrder injects in another order.
func (i *Initializer) InOrder(order Order) *Initializer { return i }

// Initialize implements admission.PluginInitializer.
func (i *Initializer) Initialize(plugin admission.Interface) {}

// Drain closes the channel that plugins were given as drained notification.
func (i *Initializer) Drain() {}

// Log returns what was injected, in order.
func (i *Initializer) Log() []Injection { return nil }

// Err returns what was wrong with the initialization: panics of setters, and what
// Strict finds. Nil is fine.
func (i *Initializer) Err() error { return nil }
