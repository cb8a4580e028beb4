package harness

import (
	"context"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Harness holds one initialized plugin.
type Harness struct{}

// Option changes how a Harness is built.
type Option func(*config)

type config struct{}

// WithConfig gives the plugin's factory this configuration. Without it, the factory
// gets a nil reader, as it does from an API server without a configuration file.
func WithConfig(yaml string) Option { return nil }

// WithWorld gives the World that the plugin lives in. Without it, an empty one.
func WithWorld(w *fakes.World) Option { return nil }

// WithInjectors gives the plugin more than, or in place of, what the World has.
func WithInjectors(injectors ...fakes.Injector) Option { return nil }

// WithInitializer has the plugin initialized by this initializer and nothing else.
func WithInitializer(initializer *fakes.Initializer) Option { return nil }

// WithScheme gives the scheme of the objects in Requests, where it is not that of
// the World: the internal types of an API server.
func WithScheme(scheme *runtime.Scheme) Option { return nil }

// New builds and initializes a plugin, and drains it when the test ends. What goes
// wrong ends the test, at the caller's line; goroutines that the plugin leaves
// behind, and changes to cached objects that nobody saw, fail it.
func New(t framework.T, source Source, options ...Option) *Harness { return nil }

// Build is New for those who have no test: the caller closes the Harness. A panic of the
// plugin is an error.
func Build(t framework.T, source Source, options ...Option) (*Harness, error) { return nil, nil }

// Close drains the plugin and waits until its goroutines have ended. The error names
// those that have not.
func (h *Harness) Close(ctx context.Context) error { return nil }

// Do carries out a Request as the API server does: both phases, each with a record of
// its own, and a reinvocation where one is asked for.
func (h *Harness) Do(request framework.Request) Result { return Result{} }

// Admit runs the mutating phase alone, Validate the validating one.
func (h *Harness) Admit(request framework.Request) Result { return Result{} }

// Validate runs the validating phase alone.
func (h *Harness) Validate(request framework.Request) Result { return Result{} }

// Run is Do with a context and without a test: the error says that the Request could
// not be carried out (its shape, its type). A refusal is a Result.
func (h *Harness) Run(ctx context.Context, request framework.Request) (Result, error) {
	return Result{}, nil
}

// Attributes returns what the plugin is given for a Request in a phase: copies, so
// that calling with them leaves the Request as it is.
func (h *Harness) Attributes(request framework.Request, phase framework.Phase) (admission.Attributes, error) {
	return nil, nil
}

// Plugin returns the plugin.
func (h *Harness) Plugin() admission.Interface { return nil }

// World returns the World the plugin lives in.
func (h *Harness) World() *fakes.World { return nil }

// Initializer returns what initialized the plugin.
func (h *Harness) Initializer() *fakes.Initializer { return nil }
