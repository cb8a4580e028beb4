package harness

import (
	"errors"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apimachinery/pkg/runtime"
)

// Option configures a Harness: see New, Build, NewChain and BuildChain.
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

// WithConfig sets the configuration that the factory of the plugin reads. Without this option the
// factory gets a nil reader, as from an API server without a configuration file.
func WithConfig(yaml string) Option {
	return func(c *config) { c.yaml = &yaml }
}

// WithWorld sets the World of the plugin. Without this option, the Harness makes an empty World.
func WithWorld(w *fakes.World) Option {
	return func(c *config) {
		if w == nil {
			c.wrong = append(c.wrong, errors.New("WithWorld has a nil World: leave it out for an empty one"))
		}
		c.world = w
	}
}

// WithInjectors adds Injectors to what every API server injects. An Injector with the name of a
// Wants interface replaces the value for that interface.
func WithInjectors(injectors ...fakes.Injector) Option {
	return func(c *config) { c.injectors = append(c.injectors, injectors...) }
}

// WithInitializer sets the Initializer of the plugin, instead of one that the Harness makes. It
// cannot be combined with WithInjectors.
func WithInitializer(initializer *fakes.Initializer) Option {
	return func(c *config) {
		if initializer == nil {
			c.wrong = append(c.wrong, errors.New("WithInitializer has a nil Initializer: leave it out for the World's"))
		}
		c.initializer = initializer
	}
}

// WithScheme adds a scheme for the types of objects in Requests that the schemes of the World do
// not have, such as the internal types of an API server.
func WithScheme(scheme *runtime.Scheme) Option {
	return func(c *config) {
		if scheme == nil {
			c.wrong = append(c.wrong, errors.New("WithScheme has a nil scheme: leave it out for the World's"))
		}
		c.scheme = scheme
	}
}

// WithForeignMutation imitates a plugin or webhook that runs after this plugin and changes the
// object: if Admit admits the object, Do calls mutate and then calls Admit again. It has no effect
// on requests without an object.
func WithForeignMutation(mutate func(object runtime.Object)) Option {
	return func(c *config) {
		if mutate == nil {
			c.wrong = append(c.wrong, errors.New("WithForeignMutation has a nil function: leave it out"))
		}
		c.foreign = mutate
	}
}
