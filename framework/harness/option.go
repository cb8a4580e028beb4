package harness

import (
	"errors"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apimachinery/pkg/runtime"
)

// Option configures a Harness. New and Build take them.
type Option func(*config)

type config struct {
	yaml        *string
	world       *fakes.World
	injectors   []fakes.Injector
	initializer *fakes.Initializer
	scheme      *runtime.Scheme
	foreign     func(runtime.Object)
	wrong       []error
}

// WithConfig sets the configuration of the plugin, which its factory reads. Without it, the
// factory gets a nil reader, as from an API server without a configuration file.
func WithConfig(yaml string) Option {
	return func(c *config) { c.yaml = &yaml }
}

// WithWorld sets the World of the plugin. Without it, the World is empty.
func WithWorld(w *fakes.World) Option {
	return func(c *config) {
		if w == nil {
			c.wrong = append(c.wrong, errors.New("WithWorld has a nil World: leave it out for an empty one"))
		}
		c.world = w
	}
}

// WithInjectors adds Injectors to those of the World, or replaces those of the same name.
func WithInjectors(injectors ...fakes.Injector) Option {
	return func(c *config) {
		c.injectors = append(c.injectors, injectors...)
		c.exclusive()
	}
}

// WithInitializer sets the only Initializer of the plugin. It cannot be combined with
// WithInjectors.
func WithInitializer(initializer *fakes.Initializer) Option {
	return func(c *config) {
		if initializer == nil {
			c.wrong = append(c.wrong, errors.New("WithInitializer has a nil Initializer: leave it out for the World's"))
		}
		c.initializer = initializer
		c.exclusive()
	}
}

func (c *config) exclusive() {
	if c.initializer != nil && len(c.injectors) > 0 {
		c.wrong = append(c.wrong, errors.New("WithInitializer and WithInjectors cannot be combined: give the injectors to fakes.NewInitializer"))
	}
}

// WithScheme adds a scheme for objects of Requests whose types are not in the World's schemes,
// such as the internal types of an API server.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(c *config) {
		if scheme == nil {
			c.wrong = append(c.wrong, errors.New("WithScheme has a nil scheme: leave it out for the World's"))
		}
		c.scheme = scheme
	}
}

// WithForeignMutation imitates a plugin or webhook that runs after this one and changes the
// object: Do calls mutate once, after Admit, and then calls the plugin again.
func WithForeignMutation(mutate func(object runtime.Object)) Option {
	return func(c *config) {
		if mutate == nil {
			c.wrong = append(c.wrong, errors.New("WithForeignMutation has a nil function: leave it out"))
		}
		c.foreign = mutate
	}
}
