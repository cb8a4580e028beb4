package harness_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework/harness"
	"k8s.io/apiserver/pkg/admission"
)

// idle is a plugin of neither phase.
type idle struct{}

func (*idle) Handles(admission.Operation) bool { return true }

// picky has a ValidateInitialization that can fail.
type picky struct {
	scripted
	err error
}

func (p *picky) ValidateInitialization() error {
	if p.err == nil {
		panic("not that either")
	}
	return p.err
}

func factory(p admission.Interface, err error) harness.Source {
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) { return p, err })
}

// TestBadSources is about plugins that cannot be built: one message each, with what to do.
func TestBadSources(t *testing.T) {
	register := func(plugins *admission.Plugins) {
		plugins.Register("One", func(io.Reader) (admission.Interface, error) { return nil, errors.New("no luck") })
		plugins.Register("Two", func(io.Reader) (admission.Interface, error) { panic("oh no") })
	}
	handler := admission.NewHandler(admission.Create)
	for _, test := range []struct {
		name   string
		source harness.Source
		want   []string
	}{
		{"zero", harness.Source{}, []string{"the Source is empty", "harness.FromRegister"}},
		{"nil register", harness.FromRegister("One", nil), []string{`"One"`, "the register function is nil"}},
		{"nil factory", harness.FromFactory(nil), []string{"the factory is nil"}},
		{"not registered", harness.FromRegister("Three", register), []string{`plugin "Three" is not registered`, "One, Two"}},
		{"registers nothing", harness.FromRegister("Three", func(*admission.Plugins) {}), []string{"register registers nothing"}},
		{"factory fails", harness.FromRegister("One", register), []string{`"One"`, "no luck"}},
		{"factory panics", harness.FromRegister("Two", register), []string{"the factory panicked at", "source_test.go:", "oh no"}},
		{"factory without a registry panics", harness.FromFactory(func(io.Reader) (admission.Interface, error) { panic("oh no") }), []string{"the factory panicked at", "source_test.go:", "oh no"}},
		{"register panics", harness.FromRegister("Two", func(*admission.Plugins) { panic("oh no") }), []string{"panicked at", "source_test.go:", "oh no"}},
		{"nothing", factory(nil, nil), []string{"neither a plugin nor an error"}},
		{"nil pointer", factory((*idle)(nil), nil), []string{"neither a plugin nor an error"}},
		{"neither interface", factory(&idle{}, nil), []string{"*harness_test.idle", "admission.MutationInterface", "admission.ValidationInterface"}},
		{"not ready", factory(&picky{scripted{Handler: handler}, errors.New("missing client")}, nil), []string{"validate the initialization", "missing client", "WithInjectors"}},
		{"panics when asked", factory(&picky{scripted{Handler: handler}, nil}, nil), []string{"ValidateInitialization panicked at", "source_test.go:", "not that either"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := harness.Build(t, test.source); err == nil {
				t.Error("Build has no error")
			} else {
				mustHave(t, err.Error(), test.want...)
			}
			mustHave(t, record(func(r *recorder) { harness.New(r, test.source) }).fatal, test.want...)
		})
	}
}

// TestBadOptions is about options that mean nothing.
func TestBadOptions(t *testing.T) {
	for name, options := range map[string][]harness.Option{
		"option 1 is nil":                                      {nil},
		"WithWorld has a nil World":                            {harness.WithWorld(nil)},
		"WithScheme has a nil scheme":                          {harness.WithScheme(nil)},
		"WithInitializer has a nil Initializer":                {harness.WithInitializer(nil)},
		"WithForeignMutation has a nil function":               {harness.WithForeignMutation(nil)},
		"WithInitializer and WithInjectors cannot be combined": {harness.WithInitializer(fakes.NewInitializer(fakes.NewWorld(t))), harness.WithInjectors(fakes.Injector{})},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := harness.Build(t, plugin(nil, nil), options...)
			if err == nil {
				t.Fatal("no error")
			}
			mustHave(t, err.Error(), "build harness: ", name)
		})
	}
	if _, err := harness.Build(nil, plugin(nil, nil)); err == nil {
		t.Error("Build without a test has no error")
	}
}

// TestConfig is about what the factory reads.
func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []harness.Option
		want    string
	}{
		{"none", nil, "nil"},
		{"empty", []harness.Option{harness.WithConfig("")}, ""},
		{"some", []harness.Option{harness.WithConfig("kind: Config\n")}, "kind: Config\n"},
	} {
		got := ""
		build := func(config io.Reader) (admission.Interface, error) {
			got = "nil"
			if config != nil {
				data, err := io.ReadAll(config)
				if err != nil {
					return nil, err
				}
				got = string(data)
			}
			return &scripted{Handler: admission.NewHandler()}, nil
		}
		for way, source := range map[string]harness.Source{
			"factory":  harness.FromFactory(build),
			"register": harness.FromRegister("P", func(p *admission.Plugins) { p.Register("P", build) }),
		} {
			t.Run(test.name+" by "+way, func(t *testing.T) {
				harness.New(t, source, test.options...)
				if got != test.want {
					t.Errorf("the factory read %q, want %q", got, test.want)
				}
			})
		}
	}
}

// TestSourcePlugin builds without initializing.
func TestSourcePlugin(t *testing.T) {
	asked := &picky{scripted{Handler: admission.NewHandler()}, errors.New("asked too early")}
	source := harness.FromRegister("P", func(p *admission.Plugins) {
		p.Register("P", func(io.Reader) (admission.Interface, error) { return asked, nil })
	})
	got, err := source.Plugin(nil)
	if err != nil || got != admission.Interface(asked) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := got.(admission.MutationInterface).Admit(context.Background(), nil, nil); err != nil {
		t.Error(err)
	}
}
