package builtin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// These are tests of k8s.io/apiserver itself: behaviours of the registry of plugins and of the
// chain that no client of an API server can see. scenarios/uncovered.yaml refers to them.

// noting is a plugin that notes its calls.
type noting struct {
	*admission.Handler
	name  string
	notes *[]string
}

func (n *noting) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	*n.notes = append(*n.notes, "admit "+n.name)
	return nil
}

func (n *noting) ValidateInitialization() error {
	*n.notes = append(*n.notes, "check "+n.name)
	return nil
}

// texts is a configuration for each plugin.
type texts map[string]string

func (c texts) ConfigFor(name string) (io.Reader, error) {
	if text, ok := c[name]; ok {
		return bytes.NewBufferString(text), nil
	}
	return nil, nil
}

// registry returns a registry with plugins that note their calls and configurations. The factory
// of Nothing returns none, that of Broken fails.
func registry(notes *[]string) *admission.Plugins {
	plugins := admission.NewPlugins()
	for _, name := range []string{"C", "A", "B"} {
		plugins.Register(name, func(config io.Reader) (admission.Interface, error) {
			if config != nil {
				text, _ := io.ReadAll(config)
				*notes = append(*notes, "read "+string(text))
			}
			return &noting{admission.NewHandler(admission.Create), name, notes}, nil
		})
	}
	plugins.Register("Nothing", func(io.Reader) (admission.Interface, error) { return nil, nil })
	plugins.Register("Broken", func(io.Reader) (admission.Interface, error) { return nil, errors.New("no luck") })
	return plugins
}

func attributes(operation admission.Operation) admission.Attributes {
	return admission.NewAttributesRecord(pod(), nil, corev1.SchemeGroupVersion.WithKind("Pod"), "default", "p", corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, nil)
}

// PLUGREG-002, PLUGREG-003, PLUGREG-006, PLUGREG-007: names are sorted; the chain has the order
// that it was given, without empty names and factories that return nothing; each configuration is
// read in full.
func TestOrderOfRegistry(t *testing.T) {
	var notes []string
	plugins := registry(&notes)
	if diff := cmp.Diff([]string{"A", "B", "Broken", "C", "Nothing"}, plugins.Registered()); diff != "" {
		t.Errorf("registered, -want +got:\n%s", diff)
	}
	made, err := plugins.NewFromPlugins([]string{"B", "", "Nothing", "C", "A"}, texts{"C": "all of it"}, admission.PluginInitializers{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.(admission.MutationInterface).Admit(t.Context(), attributes(admission.Create), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"check B", "read all of it", "check C", "check A", "admit B", "admit C", "admit A"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("calls, -want +got:\n%s", diff)
	}
}

// PLUGREG-004, PLUGREG-005: no chain is made of an unknown plugin, nor of one whose factory fails.
func TestErrorsOfRegistry(t *testing.T) {
	for name, want := range map[string]string{"X": "unknown admission plugin: X", "Broken": `couldn't init admission plugin "Broken": no luck`} {
		t.Run(name, func(t *testing.T) {
			made, err := registry(new([]string)).NewFromPlugins([]string{"A", name}, texts{}, admission.PluginInitializers{}, nil)
			if made != nil || err == nil || err.Error() != want {
				t.Errorf("got %v, %v; want the error %s", made, err, want)
			}
		})
	}
}

// registersTwice makes TestRegisteredTwice register a name twice.
const registersTwice = "ADMISSIONTEST_REGISTERS_TWICE"

// PLUGREG-001: a name that is registered twice ends the process.
func TestRegisteredTwice(t *testing.T) {
	if os.Getenv(registersTwice) != "" {
		registry(new([]string)).Register(os.Getenv(registersTwice), nil)
		return
	}
	for name, twice := range map[string]bool{"A": true, "D": false} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRegisteredTwice$")
			command.Env = append(os.Environ(), registersTwice+"="+name)
			output, err := command.CombinedOutput()
			if ended := strings.Contains(string(output), `Admission plugin "A" was registered twice`); (err != nil) != twice || ended != twice {
				t.Errorf("registering %s: %v, want the end of the process: %t\n%s", name, err, twice, output)
			}
		})
	}
}

// wrapped is a plugin in a decorator.
type wrapped struct {
	admission.Interface
	by    string
	notes *[]string
}

func (w wrapped) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	*w.notes = append(*w.notes, w.by)
	return w.Interface.(admission.MutationInterface).Admit(ctx, a, o)
}

// PLUGREG-008: decorators get the initialized plugin, each the result of the one before it.
func TestDecorators(t *testing.T) {
	var notes []string
	decorate := func(by string) admission.Decorator {
		return admission.DecoratorFunc(func(plugin admission.Interface, name string) admission.Interface {
			notes = append(notes, by+" gets "+name)
			return wrapped{plugin, by, &notes}
		})
	}
	made, err := registry(&notes).NewFromPlugins([]string{"A"}, texts{}, admission.PluginInitializers{}, admission.Decorators{decorate("inner"), decorate("outer")})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.(admission.MutationInterface).Admit(t.Context(), attributes(admission.Create), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"check A", "inner gets A", "outer gets A", "outer", "inner", "admit A"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("calls, -want +got:\n%s", diff)
	}
}

// PLUGREG-009: the API server's decorator has both phases; the one that the plugin does not have
// does nothing.
func TestPhasesOfDecorator(t *testing.T) {
	var notes []string
	decorated := admissionmetrics.WithControllerMetrics(&noting{admission.NewHandler(admission.Create), "A", &notes}, "A")
	err := errors.Join(
		decorated.(admission.ValidationInterface).Validate(t.Context(), attributes(admission.Create), nil),
		decorated.(admission.MutationInterface).Admit(t.Context(), attributes(admission.Create), nil),
	)
	if err != nil || !slices.Equal(notes, []string{"admit A"}) {
		t.Errorf("got %v, calls %q; want only the call of Admit", err, notes)
	}
}

// CHAIN-007: a chain handles what one of its plugins handles. An empty one handles nothing, and
// admits everything.
func TestHandlesOfChain(t *testing.T) {
	var notes []string
	for name, plugins := range map[string][]string{"empty": nil, "one": {"A"}} {
		made, err := registry(&notes).NewFromPlugins(plugins, texts{}, admission.PluginInitializers{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect} {
			if got, want := made.Handles(operation), name == "one" && operation == admission.Create; got != want {
				t.Errorf("%s: handles %s: %t, want %t", name, operation, got, want)
			}
			err := errors.Join(made.(admission.MutationInterface).Admit(t.Context(), attributes(operation), nil), made.(admission.ValidationInterface).Validate(t.Context(), attributes(operation), nil))
			if err != nil {
				t.Errorf("%s: %s: %v", name, operation, err)
			}
		}
	}
	if want := []string{"check A", "admit A"}; !slices.Equal(notes, want) {
		t.Errorf("calls %q, want %q", notes, want)
	}
}

// CHAIN-016: a refusal is not wrapped again. Any other error becomes one.
func TestForbiddenIsNotWrappedTwice(t *testing.T) {
	once := admission.NewForbidden(attributes(admission.Create), errors.New("no"))
	if twice := admission.NewForbidden(attributes(admission.Create), once); !errors.Is(twice, once) || !apierrors.IsForbidden(once) {
		t.Errorf("wrapped once %v, twice %v", once, twice)
	}
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("again"))
	if got := admission.NewForbidden(attributes(admission.Create), conflict); !apierrors.IsForbidden(got) {
		t.Errorf("a conflict became %v, want a refusal", got)
	}
}

// rounds is a plugin that keeps a value between the passes of a request.
type rounds struct {
	*admission.Handler
	notes *[]string
}

func (r rounds) note(a admission.Attributes, phase string) {
	kept := a.GetReinvocationContext()
	*r.notes = append(*r.notes, fmt.Sprint(phase, " ", kept.IsReinvoke(), " ", kept.Value("Rounds")))
	kept.SetValue("Rounds", "kept")
}

func (r rounds) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r.note(a, "admit")
	a.GetReinvocationContext().SetShouldReinvoke()
	return nil
}

func (r rounds) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r.note(a, "validate")
	return nil
}

// CHAIN-014: what a plugin keeps for a request is there in the second pass. The validating phase
// has other attributes, and nothing is kept for it.
func TestKeptBetweenPasses(t *testing.T) {
	var notes []string
	source := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return rounds{admission.NewHandler(admission.Update), &notes}, nil
	}).Named("Rounds")
	harness.NewChain(t, harness.Chain{Plugins: []harness.Source{source}}).Do(framework.Update(pod(), pod())).MustAllow(t)
	want := []string{"admit false <nil>", "admit true kept", "validate false <nil>"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("calls, -want +got:\n%s", diff)
	}
}

// observations returns how often the calls of a plugin, or the steps of a chain if the name is
// empty, were observed in metrics.
func observations(t *testing.T, plugin string) map[string]uint64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	name := "apiserver_admission_step_admission_duration_seconds"
	if plugin != "" {
		name = "apiserver_admission_controller_admission_duration_seconds"
	}
	counts := map[string]uint64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["name"] == plugin {
				counts[labels["type"]] += metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return counts
}

// CHAIN-020, PLUGREG-010: metrics count a phase once, and a plugin once for each pass.
func TestMetricsOfPasses(t *testing.T) {
	var notes []string
	const name = "TestMetricsOfPasses"
	source := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return rounds{admission.NewHandler(admission.Create), &notes}, nil
	}).Named(name)
	h := harness.NewChain(t, harness.Chain{Plugins: []harness.Source{source}})
	steps, calls := observations(t, ""), observations(t, name)
	h.Do(framework.Create(pod())).MustAllow(t)
	got := map[string]uint64{}
	for phase, count := range observations(t, "") {
		got["step "+phase] = count - steps[phase]
	}
	for phase, count := range observations(t, name) {
		got["plugin "+phase] = count - calls[phase]
	}
	want := map[string]uint64{"step admit": 1, "step validate": 1, "plugin admit": 2, "plugin validate": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observations, -want +got:\n%s", diff)
	}
}
