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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
)

// closing bounds how long New's cleanup waits for goroutines of the plugin.
const closing = 2 * time.Second

// Harness holds one initialized plugin. [New] and [Build] make one. Its methods are
// safe to call from many goroutines, as far as the plugin is; Calls and CacheEdits of
// Results are then those of all that ran meanwhile.
type Harness struct {
	t           framework.T
	plugin      admission.Interface
	world       *fakes.World
	initializer *fakes.Initializer
	resolver    *resolver
	interfaces  admission.ObjectInterfaces
	foreign     func(runtime.Object)
	own         label
	snapshot    *fakes.Snapshot // of when it was built
}

// New builds and initializes a plugin, and drains it when the test ends. What goes
// wrong ends the test, at the caller's line; goroutines that the plugin leaves
// behind, and changes to cached objects outside the calls made of it, fail it.
func New(t framework.T, source Source, options ...Option) *Harness {
	t.Helper()
	h, err := Build(t, source, options...)
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

// Build is New for those who close the Harness themselves. What goes wrong is the
// error, a panic of the plugin a *[PanicError] in it; t is for the World, where no
// other is given.
func Build(t framework.T, source Source, options ...Option) (*Harness, error) {
	if t == nil {
		return nil, errors.New("build harness: there is no test: give a framework.T")
	}
	t.Helper()
	settings := config{}
	for at, option := range options {
		if option == nil {
			return nil, fmt.Errorf("build harness: option %d is nil: leave it out", at+1)
		}
		option(&settings)
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
	if settings.scheme == nil {
		settings.scheme = schemeOf(world)
	}
	h := &Harness{
		t:           t,
		world:       world,
		initializer: settings.initializer,
		resolver:    &resolver{scheme: settings.scheme, mapper: world.RESTMapper()},
		interfaces:  admission.NewObjectInterfacesFromScheme(settings.scheme),
		foreign:     settings.foreign,
		own:         newLabel(),
		snapshot:    world.Snapshot(),
	}
	if err := h.start(source, settings.yaml); err != nil {
		h.initializer.Drain()
		return nil, err
	}
	return h, nil
}

// schemeOf is the scheme of a World's objects.
func schemeOf(w *fakes.World) *runtime.Scheme {
	if knows, ok := any(w).(interface{ Scheme() *runtime.Scheme }); ok {
		return knows.Scheme()
	}
	return scheme.Scheme
}

// start makes the plugin, gives it what it wants, and has it say whether that will do.
func (h *Harness) start(source Source, yaml *string) error {
	defer h.own.set(context.Background())()
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
	return nil
}

// Plugin returns the plugin.
func (h *Harness) Plugin() admission.Interface { return h.plugin }

// Scheme returns the scheme of the objects in Requests.
func (h *Harness) Scheme() *runtime.Scheme { return h.resolver.scheme }

// ObjectInterfaces returns what the plugin is called with besides attributes.
func (h *Harness) ObjectInterfaces() admission.ObjectInterfaces { return h.interfaces }

// World returns the World the plugin lives in.
func (h *Harness) World() *fakes.World { return h.world }

// Initializer returns what initialized the plugin.
func (h *Harness) Initializer() *fakes.Initializer { return h.initializer }
