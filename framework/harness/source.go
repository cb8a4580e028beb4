package harness

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/apiserver/pkg/admission"
)

// Source builds a plugin. Each Harness builds a new one. Make a Source with FromRegister or
// FromFactory. The zero value returns an error when a plugin is built.
type Source struct {
	name    string
	factory admission.Factory
	// register is nil for a Source that is a factory.
	register func(*admission.Plugins)
	// wrong is why no plugin can be built. Nil if one can.
	wrong error
}

// FromRegister returns the Source of the plugin that register registers with this name. The
// function may register other plugins, too.
func FromRegister(name string, register func(*admission.Plugins)) Source {
	source := Source{name: name, register: register}
	if register == nil {
		source.wrong = fmt.Errorf("find plugin %q: the register function is nil: give the one that calls plugins.Register(%q, …)", name, name)
		return source
	}
	source.factory = func(config io.Reader) (admission.Interface, error) { return fromPlugins(name, register, config) }
	return source
}

// Named returns the same Source with a name. Each plugin of a [Chain] needs a name.
func (s Source) Named(name string) Source {
	s.name = name
	return s
}

// FromFactory returns the Source of the plugins that a factory returns.
func FromFactory(factory admission.Factory) Source {
	if factory == nil {
		return Source{wrong: errors.New("build plugin: the factory is nil: give a func(io.Reader) (admission.Interface, error)")}
	}
	return Source{factory: factory}
}

// fromPlugins builds the plugin through a new registry, as an API server does, but without
// initializing it: the Harness does that later.
func fromPlugins(name string, register func(*admission.Plugins), config io.Reader) (admission.Interface, error) {
	plugins := admission.NewPlugins()
	register(plugins)
	if names := plugins.Registered(); !contains(names, name) {
		return nil, fmt.Errorf("plugin %q is not registered: register registers %s", name, list(names))
	}
	// Only InitPlugin gives access to a registered factory. After the initializer it calls
	// ValidateInitialization, which must not run yet. So the initializer take ends the goroutine.
	taken, done := take{}, make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = guard("the factory", func() error {
			_, failed := plugins.InitPlugin(name, config, &taken)
			return failed
		})
	}()
	<-done
	return taken.plugin, err
}

// take is an initializer that stores the plugin and ends the goroutine.
type take struct{ plugin admission.Interface }

func (t *take) Initialize(plugin admission.Interface) {
	t.plugin = plugin
	runtime.Goexit()
}

// Plugin builds a plugin and does not initialize it. A nil config means no configuration. If the
// factory panics, the error is a *[PanicError].
func (s Source) Plugin(config io.Reader) (plugin admission.Interface, err error) {
	if s.wrong != nil {
		return nil, s.wrong
	}
	if s.factory == nil {
		return nil, errors.New("build plugin: the Source is empty: use harness.FromRegister or harness.FromFactory")
	}
	err = guard("the factory", func() error {
		var failed error
		plugin, failed = s.factory(config)
		return failed
	})
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("build plugin%s: its factory: %w", s.named(), err)
	case isNil(plugin):
		return nil, fmt.Errorf("build plugin%s: its factory returned neither a plugin nor an error", s.named())
	}
	_, mutates := plugin.(admission.MutationInterface)
	_, validates := plugin.(admission.ValidationInterface)
	if !mutates && !validates {
		return nil, fmt.Errorf("build plugin%s: %T is neither an admission.MutationInterface nor an admission.ValidationInterface, so an API server never calls it: it needs Admit(ctx, attributes, objects) error or Validate(ctx, attributes, objects) error, of the type the factory returns", s.named(), plugin)
	}
	return plugin, nil
}

func (s Source) named() string {
	if s.name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", s.name)
}

func isNil(plugin admission.Interface) bool {
	if plugin == nil {
		return true
	}
	value := reflect.ValueOf(plugin)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

func contains(names []string, name string) bool {
	for _, other := range names {
		if other == name {
			return true
		}
	}
	return false
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
