package check

import (
	"errors"
	"io"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// World returns a new World of the Subject. The options come after the options of the Subject.
func (t *T) World(options ...fakes.Option) *fakes.World {
	t.Helper()
	return fakes.NewWorld(t, append(append([]fakes.Option{}, t.Subject.World...), options...)...)
}

// Plugin returns a new, initialized plugin of the Subject in a new World. The options come
// after the options of the Subject. The plugin is drained when the check ends.
func (t *T) Plugin(options ...harness.Option) *harness.Harness {
	t.Helper()
	return t.PluginIn(t.World(), options...)
}

// PluginIn is Plugin in a given World.
func (t *T) PluginIn(w *fakes.World, options ...harness.Option) *harness.Harness {
	t.Helper()
	h, err := t.Build(w, options...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return h
}

// Build is PluginIn for checks of the initialization: it returns an error instead of failing the
// check.
func (t *T) Build(w *fakes.World, options ...harness.Option) (*harness.Harness, error) {
	t.Helper()
	h, err := harness.Build(t, t.Subject.Source, t.harnessOptions(w, options)...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(h.Initializer().Drain) // not Close: goroutines that still run matter only to goroutines-end-when-drained (L1)
	return h, nil
}

// BuildWith is Build with another initializer.
func (t *T) BuildWith(w *fakes.World, initializer *fakes.Initializer) (*harness.Harness, error) {
	h, err := harness.Build(t, t.Subject.Source, append(t.plainOptions(w), harness.WithInitializer(initializer))...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(initializer.Drain)
	return h, nil
}

// harnessOptions returns the options of the Subject, then more.
func (t *T) harnessOptions(w *fakes.World, more []harness.Option) []harness.Option {
	options := t.plainOptions(w)
	if t.Subject.Inject != nil {
		options = append(options, harness.WithInjectors(t.Subject.Inject(w)...))
	}
	return append(options, more...)
}

// plainOptions returns the options of the Subject without its injectors.
func (t *T) plainOptions(w *fakes.World) []harness.Option {
	options := []harness.Option{harness.WithWorld(w)}
	if t.Subject.Config != "" {
		options = append(options, harness.WithConfig(t.Subject.Config))
	}
	if t.Subject.Scheme != nil {
		options = append(options, harness.WithScheme(t.Subject.Scheme))
	}
	return options
}

// NewPlugin returns a new plugin of the Subject that is not initialized.
func (t *T) NewPlugin() admission.Interface {
	plugin, err := t.Subject.Source.Plugin(t.Configuration())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return plugin
}

// Configuration returns the configuration of the Subject as a factory gets it. Nil if the Subject
// has none.
func (t *T) Configuration() io.Reader {
	if t.Subject.Config == "" {
		return nil
	}
	return strings.NewReader(t.Subject.Config)
}

// Initializer returns an initializer that injects what the Subject injects. More injectors
// replace initializers of the same name.
func (t *T) Initializer(w *fakes.World, more ...fakes.Injector) *fakes.Initializer {
	var injectors []fakes.Injector
	if t.Subject.Inject != nil {
		injectors = t.Subject.Inject(w)
	}
	injectors = slices.DeleteFunc(slices.Clone(injectors), func(one fakes.Injector) bool {
		return slices.ContainsFunc(more, func(other fakes.Injector) bool { return one.Name() == other.Name() })
	})
	return fakes.NewInitializer(w, append(injectors, more...)...)
}

// InjectedNames returns the names of the Wants interfaces whose setters were called, each of them
// once.
func InjectedNames(log []fakes.Injection) []string {
	var names []string
	for _, injection := range log {
		if !slices.Contains(names, injection.Interface) {
			names = append(names, injection.Interface)
		}
	}
	return names
}

// ValidateInitialization calls the method of this name of a plugin. Thrown is the value with which
// it panicked, or nil. Exists is false if the plugin has no such method.
func ValidateInitialization(plugin admission.Interface) (err error, thrown any, exists bool) { //nolint:staticcheck // a panic is not the error
	validator, ok := plugin.(admission.InitializationValidator)
	if !ok {
		return nil, nil, false
	}
	defer func() { thrown, exists = recover(), true }()
	return validator.ValidateInitialization(), nil, true
}

// AsPanic returns the panic of a plugin that an error wraps.
func AsPanic(err error) (*harness.PanicError, bool) {
	var thrown *harness.PanicError
	return thrown, errors.As(err, &thrown)
}
