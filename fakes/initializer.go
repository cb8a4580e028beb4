package fakes

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/admissiontest/admissiontest/internal/minor"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"k8s.io/apiserver/pkg/admission"
)

// Injection is one value that an Initializer gave to a plugin.
type Injection struct {
	// Interface is the name of the Injector. For an interface of Kubernetes it is that
	// interface's name, such as "WantsAuthorizer".
	Interface string
	// Method is the name of the setter that was called: the first setter if the interface of the
	// Injector has several. Empty if the type of the Injector is not an interface.
	Method string
}

// Initializer injects into plugins what an API server injects, with the clients and informers of a
// World, and records what it injected. It can initialize several plugins, each of them once. Make
// an Initializer with NewInitializer: for the zero value, Err returns an error. Its methods are
// safe for concurrent use, but call Strict, Skip and InOrder before Initialize.
type Initializer struct {
	world   *World
	steps   []step
	given   map[string]any
	skipped map[string]bool
	order   Order
	strict  bool
	drained chan struct{}
	drain   sync.Once
	made    bool

	mu      sync.Mutex
	flaws   []error
	plugins []*initialized
	log     []Injection
}

var _ admission.PluginInitializer = &Initializer{}

// initialized has the Injectors that called each method of one plugin.
type initialized struct {
	plugin admission.Interface
	times  int
	calls  map[string][]string
	// failed has the methods that were not called, for which Err already has an error.
	failed map[string]bool
}

// NewInitializer returns an Initializer for every Wants interface for which an API server has a
// value, and for the extra Injectors, which come last. An extra Injector with the name of a Wants
// interface replaces the value for that interface. The World may be nil if no plugin wants clients,
// informers or a RESTMapper.
func NewInitializer(w *World, extra ...Injector) *Initializer {
	i := &Initializer{
		world: w, made: true, drained: make(chan struct{}),
		given: map[string]any{}, skipped: map[string]bool{},
	}
	for _, wants := range minor.Table() {
		i.steps = append(i.steps, i.ofKubernetes(wants))
	}
	added := map[string]bool{}
	for n, injector := range extra {
		if err := injector.flaw(); err != nil {
			i.flaws = append(i.flaws, fmt.Errorf("read Injector %d of NewInitializer: %w", n+1, err))
			continue
		}
		if added[injector.name] {
			i.flaws = append(i.flaws, fmt.Errorf("read Injector %d of NewInitializer: another one is called %q too: give each another name", n+1, injector.name))
			continue
		}
		added[injector.name] = true
		i.add(injector)
	}
	return i
}

// add appends an Injector, or replaces Kubernetes' own one of its name.
func (i *Initializer) add(injector Injector) {
	at := slices.IndexFunc(i.steps, func(s step) bool { return s.name == injector.name })
	if injector.bind == nil { // a value for a setter of Kubernetes
		i.given[injector.name] = injector.value
		i.steps[at].extra = true
		return
	}
	added := step{name: injector.name, methods: injector.methods, concrete: injector.concrete, extra: true, bind: injector.bind}
	if at < 0 {
		i.steps = append(i.steps, added)
		return
	}
	added.replaces = true
	i.steps[at] = added
}

// Strict makes Err also report an exported Set or Inspect method that was not called or was called
// twice, a plugin that was initialized twice, and an extra Injector that no plugin wanted. It does
// not report methods whose interface Skip names. It returns the Initializer.
func (i *Initializer) Strict() *Initializer {
	i.strict = true
	return i
}

// Skip leaves out the injections with these names, such as "WantsAuthorizer", and returns the
// Initializer. Err returns an error for an unknown name.
func (i *Initializer) Skip(names ...string) *Initializer {
	known := i.names()
	for _, name := range names {
		if !slices.Contains(known, name) {
			i.fail(fmt.Errorf("skip %q: no injection has this name%s", name, suggest.DidYouMean(name, known)))
			continue
		}
		i.skipped[name] = true
	}
	return i
}

// InOrder sets the order of the injections and returns the Initializer. Nil is DefaultOrder.
func (i *Initializer) InOrder(order Order) *Initializer {
	i.order = order
	return i
}

// Initialize implements admission.PluginInitializer. If a setter panics, Initialize continues with
// the other setters, and Err returns an error for the panic.
func (i *Initializer) Initialize(plugin admission.Interface) {
	if plugin == nil {
		i.fail(errors.New("initialize plugin: it is nil: give Initialize what the plugin's factory returned"))
		return
	}
	state := i.initialized(plugin)
	for _, step := range i.ordered() {
		setter, ok := step.bind(plugin)
		if !ok || i.skipped[step.name] {
			continue
		}
		i.inject(state, step, setter)
	}
}

// inject calls one setter and records it.
func (i *Initializer) inject(state *initialized, s step, set func() error) {
	injection := Injection{Interface: s.name}
	if len(s.methods) > 0 {
		injection.Method = s.methods[0]
	}
	called, err := guarded(set)
	if err != nil {
		what := s.name
		if injection.Method != "" {
			what = injection.Method + " of " + s.name
		}
		i.fail(fmt.Errorf("initialize %T: call %s: %w", state.plugin, what, err))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !called {
		state.failed[injection.Method] = true
		return
	}
	i.log = append(i.log, injection)
	for _, method := range s.methods {
		state.calls[method] = append(state.calls[method], s.name)
	}
	if len(s.methods) == 0 {
		state.calls[""] = append(state.calls[""], s.name)
	}
}

// initialized returns the state of a plugin, a new one for a new plugin.
func (i *Initializer) initialized(plugin admission.Interface) *initialized {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, known := range i.plugins {
		if same(known.plugin, plugin) {
			known.times++
			return known
		}
	}
	state := &initialized{plugin: plugin, times: 1, calls: map[string][]string{}, failed: map[string]bool{}}
	i.plugins = append(i.plugins, state)
	return state
}

// ordered returns the steps in the order of InOrder. If that function does not return each name
// exactly once, Err returns an error, and the order is that of an API server.
func (i *Initializer) ordered() []step {
	if i.order == nil {
		return i.steps
	}
	byName := map[string]step{}
	for _, s := range i.steps {
		byName[s.name] = s
	}
	names := i.order(i.names())
	sorted, want := slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(i.names()))
	if !slices.Equal(sorted, want) {
		i.fail(fmt.Errorf("order injections: the Order must return each of the %d names once, it returned %q", len(want), names))
		return i.steps
	}
	steps := make([]step, 0, len(names))
	for _, name := range names {
		steps = append(steps, byName[name])
	}
	return steps
}

// names returns the names of all injections, in Kubernetes' order.
func (i *Initializer) names() []string {
	names := make([]string, 0, len(i.steps))
	for _, s := range i.steps {
		names = append(names, s.name)
	}
	return names
}

// fail records an error, once.
func (i *Initializer) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, known := range i.flaws {
		if known.Error() == err.Error() {
			return
		}
	}
	i.flaws = append(i.flaws, err)
}

// Drain closes the channel of SetDrainedNotification, as an API server does when it shuts
// down. A second call does nothing.
func (i *Initializer) Drain() {
	if i.drained != nil {
		i.drain.Do(func() { close(i.drained) })
	}
}

// Log returns the injections so far, in their order.
func (i *Initializer) Log() []Injection {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.log)
}

// Err returns all errors of the initialization, joined: panics of setters, unknown names, values
// that a plugin wants and the Initializer does not have, and the errors that Strict adds. Nil if
// there are none.
func (i *Initializer) Err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.made {
		return errors.New("initialize plugins: this Initializer is empty: make it with NewInitializer")
	}
	found := slices.Clone(i.flaws)
	if i.strict {
		found = append(found, i.findings()...)
	}
	return errors.Join(found...)
}
