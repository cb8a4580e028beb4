package harness

import (
	"errors"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apimachinery/pkg/runtime"
)

// Option changes how a Harness is built.
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

// WithConfig gives the plugin's factory this configuration. Without it, the factory
// gets a nil reader, as it does from an API server without a configuration file.
func WithConfig(yaml string) Option {
	return func(c *config) { c.yaml = &yaml }
}

// WithWorld gives the World that the plugin lives in. Without it, an empty one.
func WithWorld(w *fakes.World) Option {
	return func(c *config) {
		if w == nil {
			c.wrong = append(c.wrong, errors.New("WithWorld has a nil World: leave it out for an empty one"))
		}
		c.world = w
	}
}

// WithInjectors gives the plugin more than, or in place of, what the World has.
func WithInjectors(injectors ...fakes.Injector) Option {
	return func(c *config) {
		c.injectors = append(c.injectors, injectors...)
		c.exclusive()
	}
}

// WithInitializer has the plugin initialized by this initializer and nothing else. It
// excludes WithInjectors.
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
		c.wrong = append(c.wrong, errors.New("WithInitializer and WithInjectors exclude one another: give the injectors to fakes.NewInitializer"))
	}
}

// WithScheme gives the scheme of the objects in Requests, where it is not that of
// the World: the internal types of an API server.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(c *config) {
		if scheme == nil {
			c.wrong = append(c.wrong, errors.New("WithScheme has a nil scheme: leave it out for the World's"))
		}
		c.scheme = scheme
	}
}

// WithForeignMutation stands for a plugin or webhook behind this one, which changes
// each object in Do: mutate is called once, after Admit, and the plugin is reinvoked.
func WithForeignMutation(mutate func(object runtime.Object)) Option {
	return func(c *config) {
		if mutate == nil {
			c.wrong = append(c.wrong, errors.New("WithForeignMutation has a nil function: leave it out"))
		}
		c.foreign = mutate
	}
}
