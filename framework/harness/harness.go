package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/minor"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/processes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// closing is how long New's cleanup waits for the goroutines of the plugin.
const closing = 2 * time.Second

// Harness has one initialized plugin, or a chain of plugins. Make a Harness with [New], [Build],
// [NewChain] or [BuildChain]. Its methods are safe for concurrent use if the plugins are. Calls and
// CacheEdits of a Result then include edits by other requests that ran at the same time.
type Harness struct {
	t           framework.T
	plugin      admission.Interface
	world       *fakes.World
	initializer *fakes.Initializer
	resolver    *resolver
	interfaces  map[*runtime.Scheme]admission.ObjectInterfaces
	foreign     func(runtime.Object)
	own         processes.Label
	chained     bool            // several plugins: see Chain
	snapshot    *fakes.Snapshot // the moment when the Harness was built
}

// New builds and initializes a plugin. An error ends the test, with a message at the caller's line.
// When the test ends, New sends the drained notification to the plugin. The test then fails if
// goroutines of the plugin still run 2 seconds later, or if the plugin changed cached objects
// outside of calls.
func New(t framework.T, source Source, options ...Option) *Harness {
	t.Helper()
	h, err := Build(t, source, options...)
	for _, wants := range minor.Table() {
		if err != nil {
			break
		}
		if _, lacks := wants.Setter(h.plugin); lacks != nil && !errors.Is(lacks, minor.ErrNoMethod) {
			t.Logf("initialize %T: %s was not called: %v", h.plugin, wants.Method, lacks)
		}
	}
	return closeAfter(t, h, err)
}

// closeAfter closes a Harness when the test ends. An error of its builder ends the test.
func closeAfter(t framework.T, h *Harness, err error) *Harness {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("%v", err)
		}
	})
	return h
}

// Build is New for a caller that closes the Harness itself with [Harness.Close]. It returns an
// error instead of ending the test. If the plugin panicked, the error wraps a *[PanicError].
// Without WithWorld, Build uses t to make a World.
func Build(t framework.T, source Source, options ...Option) (*Harness, error) {
	return build(t, options, func(h *Harness, settings *config) error { return h.start(source, settings.yaml) })
}

// build makes a Harness. The function start builds and initializes the plugin.
func build(t framework.T, options []Option, start func(*Harness, *config) error) (*Harness, error) {
	if t == nil {
		return nil, errors.New("build harness: the test is nil: give a framework.T")
	}
	t.Helper()
	settings := config{}
	for at, option := range options {
		if option == nil {
			return nil, fmt.Errorf("build harness: option %d is nil: leave it out", at+1)
		}
		option(&settings)
	}
	if settings.initializer != nil && len(settings.injectors) > 0 {
		settings.wrong = append(settings.wrong, errors.New("WithInitializer and WithInjectors cannot be combined: give the injectors to fakes.NewInitializer"))
	}
	if len(settings.wrong) > 0 {
		return nil, fmt.Errorf("build harness: %w", errors.Join(settings.wrong...))
	}
	world := settings.world
	if world == nil {
		world = fakes.NewWorld(t)
	}
	if settings.initializer == nil {
		settings.initializer = fakes.NewInitializer(world, settings.injectors...)
	}
	schemes := world.Schemes()
	if settings.scheme != nil {
		schemes = []*runtime.Scheme{settings.scheme}
	}
	h := &Harness{
		t:           t,
		world:       world,
		initializer: settings.initializer,
		resolver:    &resolver{schemes: schemes, mapper: world.RESTMapper()},
		interfaces:  map[*runtime.Scheme]admission.ObjectInterfaces{},
		foreign:     settings.foreign,
		own:         processes.NewLabel(),
		snapshot:    world.Snapshot(),
	}
	for _, scheme := range schemes {
		h.interfaces[scheme] = admission.NewObjectInterfacesFromScheme(scheme)
	}
	if err := start(h, &settings); err != nil {
		h.initializer.Drain()
		return nil, err
	}
	return h, nil
}

// start builds the plugin, initializes it and calls its ValidateInitialization.
func (h *Harness) start(source Source, yaml *string) error {
	defer h.own.Set(context.Background())()
	var config io.Reader
	if yaml != nil {
		config = strings.NewReader(*yaml)
	}
	plugin, err := source.Plugin(config)
	if err != nil {
		return err
	}
	h.plugin = plugin
	err = guard("initialization", func() error {
		h.initializer.Initialize(plugin)
		return h.initializer.Err()
	})
	if err != nil {
		return fmt.Errorf("initialize plugin%s: %w", source.named(), err)
	}
	err = guard("ValidateInitialization", func() error { return admission.ValidateInitialization(plugin) })
	if err != nil {
		return fmt.Errorf("validate the initialization of plugin%s: %w: give what it misses with harness.WithWorld or harness.WithInjectors", source.named(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	h.findInformers(ctx, plugin)
	if err := h.waitHandlers(ctx); err != nil {
		return fmt.Errorf("initialize plugin%s: %w", source.named(), err)
	}
	return nil
}

// Plugin returns the plugin, or the whole chain.
func (h *Harness) Plugin() admission.Interface { return h.plugin }

// ObjectInterfaces returns the third argument of Admit and Validate for an object, from the scheme
// that has its type.
func (h *Harness) ObjectInterfaces(object runtime.Object) admission.ObjectInterfaces {
	return h.interfaces[h.resolver.schemeOf(object)]
}

// of returns ObjectInterfaces for the object of attributes.
func (h *Harness) of(a admission.Attributes) admission.ObjectInterfaces {
	if object := a.GetObject(); !objects.IsNil(object) {
		return h.ObjectInterfaces(object)
	}
	return h.ObjectInterfaces(a.GetOldObject())
}

// World returns the World of the plugin.
func (h *Harness) World() *fakes.World { return h.world }

// Initializer returns the Initializer that initialized the plugin.
func (h *Harness) Initializer() *fakes.Initializer { return h.initializer }
