package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// chain makes a Chain of these plugins.
func chain(plugins ...harness.Source) harness.Chain { return harness.Chain{Plugins: plugins} }

// label sets a label to a value, if the label before it has the value that it wants.
func label(key, value, after string) call {
	return func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		subject := a.GetObject().(*corev1.Pod)
		if after == "" || subject.Labels[after] != "" {
			metav1.SetMetaDataLabel(&subject.ObjectMeta, key, value)
		}
		return nil
	}
}

// reinvoke asks for a reinvocation.
func reinvoke(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	a.GetReinvocationContext().SetShouldReinvoke()
	return nil
}

func refuse(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return admission.NewForbidden(a, errors.New("not this one"))
}

// of returns the Source of a plugin that handles some operations.
func of(name string, made admission.Interface) harness.Source {
	return harness.FromFactory(func(io.Reader) (admission.Interface, error) { return made, nil }).Named(name)
}

// mutatorOnly has no Validate.
type mutatorOnly struct {
	*admission.Handler
	admit call
}

func (m mutatorOnly) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return m.admit(ctx, a, o)
}

// lines describes a Trace: a line for each call.
func lines(trace framework.Trace) string {
	var all []string
	for _, one := range trace {
		text := string(one.Phase) + " " + string(rune('0'+one.Plugin.Round)) + " " + one.Plugin.Name
		if !one.Plugin.Handled {
			text += " unhandled"
		}
		if one.Plugin.Refused != nil {
			text += " refused " + one.Plugin.Refused.Reason + " " + one.Plugin.Refused.Message
		}
		all = append(all, strings.Join(append([]string{text}, one.Plugin.Changed...), " "))
	}
	return strings.Join(all, "\n")
}

func TestChain(t *testing.T) {
	nothing := label("", "", "never")
	h := harness.NewChain(t, chain(
		plugin(label("a", "1", "b"), nothing).Named("A"),
		of("OnlyDeletes", &scripted{Handler: admission.NewHandler(admission.Delete)}),
		of("OnlyAdmits", mutatorOnly{admission.NewHandler(admission.Create), label("b", "2", "")}),
		plugin(reinvoke, nothing).Named("Asks"),
	))
	result := h.Do(framework.Create(pod("p"))).MustAllow(t)
	want := strings.Join([]string{
		"mutating 0 A",
		"mutating 0 OnlyDeletes unhandled",
		"mutating 0 OnlyAdmits metadata.labels.b",
		"mutating 0 Asks",
		"mutating 1 A metadata.labels.a",
		"mutating 1 OnlyDeletes unhandled",
		"mutating 1 OnlyAdmits",
		"mutating 1 Asks",
		"validating 0 A",
		"validating 0 OnlyDeletes unhandled",
		"validating 0 Asks",
	}, "\n")
	if diff := cmp.Diff(want, lines(result.Trace)); diff != "" {
		t.Errorf("trace, -want +got:\n%s", diff)
	}
	if !result.Reinvoked || len(result.Audit.Annotations) != 0 {
		t.Errorf("reinvoked %t, annotations %v; want a reinvocation and no annotations", result.Reinvoked, result.Audit.Annotations)
	}
	for _, one := range result.Trace {
		if p := one.Plugin; !one.Observed || one.Started.Before(result.Started.Round(0)) || one.Finished.Before(one.Started) || one.Finished.After(result.Finished.Round(0)) ||
			p.Operation != "CREATE" || p.Resource != "pods" || p.Namespace != "test" || p.Object != "p" {
			t.Errorf("the call does not describe the request, or has no times of it: %+v %+v", one, p)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, harness.Mutated[*corev1.Pod](t, result).Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}
}

// The paths of a change are JSON names, in any form of the object.
func TestChangesInChain(t *testing.T) {
	edit := func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		if a.GetOperation() == admission.Delete {
			return nil
		}
		accessor, err := meta.Accessor(a.GetObject())
		if err == nil {
			accessor.SetLabels(map[string]string{"example.com/x": "1", "y": "2"})
		}
		return err
	}
	h := harness.NewChain(t, chain(plugin(edit, nil).Named("Edits"), plugin(edit, nil).Named("Again")))
	for name, request := range map[string]framework.Request{
		"typed": framework.Create(pod("p")), "unstructured": framework.Create(pod("p")).AsUnstructured(),
	} {
		t.Run(name, func(t *testing.T) {
			trace := h.Do(request).MustAllow(t).Trace
			want := []string{`metadata.labels["example.com/x"]`, "metadata.labels.y"}
			if diff := cmp.Diff(want, trace[0].Plugin.Changed); diff != "" {
				t.Errorf("paths, -want +got:\n%s", diff)
			}
			if again := trace[1].Plugin; again.Name != "Again" || len(again.Changed) != 0 || again.NotComparable != "" {
				t.Errorf("the second call changed nothing, but is %+v", again)
			}
		})
	}
	if got := h.Do(framework.Delete(pod("p"))).MustAllow(t).Trace[0].Plugin; len(got.Changed) > 0 || got.NotComparable != "" {
		t.Errorf("the call without an object is %+v", got)
	}
}

// In the other order, A sees the label in the first pass, and without a request for it there is
// no second one.
func TestOrderOfChain(t *testing.T) {
	first, second := plugin(label("a", "1", "b"), nil).Named("A"), plugin(label("b", "2", ""), nil).Named("B")
	for want, plugins := range map[string]harness.Chain{"B A": chain(second, first), "A B": chain(first, second)} {
		t.Run(want, func(t *testing.T) {
			result := harness.NewChain(t, plugins).Do(framework.Create(pod("p"))).MustAllow(t)
			names := strings.Fields(want)
			if diff := cmp.Diff(slices.Concat(names, names), result.Trace.Plugins()); diff != "" {
				t.Errorf("plugins, -want +got:\n%s", diff)
			}
			if got := harness.Mutated[*corev1.Pod](t, result).Labels["a"]; (got == "1") != (want == "B A") || result.Reinvoked {
				t.Errorf("label a is %q, reinvoked %t", got, result.Reinvoked)
			}
		})
	}
}

// A refusal ends the phase and the request.
func TestRefusalInChain(t *testing.T) {
	called := false
	h := harness.NewChain(t, chain(
		plugin(label("a", "1", ""), nil).Named("A"), plugin(refuse, nil).Named("Refuses"),
		plugin(func(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
			called = true
			return nil
		}, nil).Named("After"),
	))
	result := h.Do(framework.Create(pod("p"))).MustReject(t, metav1.StatusReasonForbidden, "not this one")
	want := "mutating 0 A metadata.labels.a\nmutating 0 Refuses refused Forbidden pods \"p\" is forbidden: not this one"
	if diff := cmp.Diff(want, lines(result.Trace)); diff != "" || called {
		t.Errorf("later plugin called: %t; trace, -want +got:\n%s", called, diff)
	}
	failed := record(func(r *recorder) { result.MustAllow(r) }).fatal
	mustHave(t, failed, "\nplugins:  mutating round 0  A: changed metadata.labels.a\n          mutating round 0  Refuses: refused with 403 Forbidden")
}

// A request that no plugin handles is admitted without a call, which is no approval.
func TestChainThatIgnores(t *testing.T) {
	h := harness.NewChain(t, chain(of("A", mutatorOnly{admission.NewHandler(admission.Create), refuse})))
	result := h.Do(framework.Delete(pod("p"))).MustIgnore(t)
	failed := record(func(r *recorder) { result.MustAllow(r) }).fatal
	mustHave(t, failed, "no plugin of the chain handles DELETE, so an API server admits the request without a call (if that is intended, use MustIgnore)")
	if len(result.Trace) != 0 {
		t.Errorf("trace of %s, want none", lines(result.Trace))
	}
}

// A panic is one of a plugin, with its name and place.
func TestPanicInChain(t *testing.T) {
	broken := func(context.Context, admission.Attributes, admission.ObjectInterfaces) error { panic("broken") }
	for want, source := range map[string]harness.Source{
		`Admit of plugin "Panics" panicked at `:    plugin(broken, nil),
		`Validate of plugin "Panics" panicked at `: plugin(nil, broken),
	} {
		t.Run(want, func(t *testing.T) {
			h := harness.NewChain(t, chain(plugin(nil, nil).Named("A"), source.Named("Panics")))
			_, err := h.Run(t.Context(), framework.Create(pod("p")))
			var panicked *harness.PanicError
			if !errors.As(err, &panicked) || !strings.Contains(err.Error(), want) || !strings.Contains(panicked.Frame, "TestPanicInChain") {
				t.Errorf("error %v, want %s and the position of the panic", err, want)
			}
		})
	}
}

func TestSwitches(t *testing.T) {
	full := func(edit func(*harness.Chain)) harness.Chain {
		made := chain(plugin(nil, nil).Named("A"), plugin(nil, nil).Named("B"), plugin(nil, nil).Named("C"))
		made.DefaultOffPlugins = []string{"B"}
		edit(&made)
		return made
	}
	for name, test := range map[string]struct {
		chain harness.Chain
		want  string
	}{
		"default":       {full(func(*harness.Chain) {}), "A C"},
		"one more":      {full(func(c *harness.Chain) { c.EnablePlugins = []string{"B", "A"} }), "A B C"},
		"one less":      {full(func(c *harness.Chain) { c.DisablePlugins = []string{"A", "B"} }), "C"},
		"both switches": {full(func(c *harness.Chain) { c.EnablePlugins, c.DisablePlugins = []string{"B"}, []string{"C"} }), "A B"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewChain(t, test.chain)
			if got := h.Admit(framework.Create(pod("p"))).MustAllow(t).Trace.Plugins(); strings.Join(got, " ") != test.want {
				t.Errorf("called %q, want %s", got, test.want)
			}
		})
	}
}

// Misuse is an error that says what to do. An API server ends its process for some of it.
func TestMisuseOfChain(t *testing.T) {
	a, b := plugin(nil, nil).Named("A"), plugin(nil, nil).Named("B")
	registered := harness.FromRegister("Owenr", func(plugins *admission.Plugins) {
		plugins.Register("Owner", func(io.Reader) (admission.Interface, error) { return &scripted{}, nil })
	})
	for name, test := range map[string]struct {
		chain   harness.Chain
		options []harness.Option
		want    string
	}{
		"empty":               {harness.Chain{}, nil, "build chain: Chain.Plugins is empty: give the plugins in their order"},
		"no name":             {chain(a, plugin(nil, nil)), nil, "build chain: plugin 2 of Chain.Plugins: it has no name: use harness.FromRegister, or Named"},
		"no plugin":           {chain(harness.Source{}), nil, "build chain: plugin 1 of Chain.Plugins: the Source is empty: use harness.FromRegister or harness.FromFactory"},
		"no factory":          {chain(harness.FromFactory(nil)), nil, "build chain: plugin 1 of Chain.Plugins: build plugin: the factory is nil"},
		"twice":               {chain(a, b, a), nil, `build chain: plugins 1 and 3 of Chain.Plugins have the name "A": a plugin can be in a chain only once`},
		"unknown":             {harness.Chain{Plugins: []harness.Source{registered}, DisablePlugins: []string{"Owenr"}}, nil, `plugin 1 of Chain.Plugins: plugin "Owenr" is not registered: register registers Owner; did you mean "Owner"?`},
		"unknown switch":      {harness.Chain{Plugins: []harness.Source{a, b}, EnablePlugins: []string{"C"}}, nil, `build chain: field EnablePlugins of the Chain has "C", and Plugins has only A, B`},
		"unknown default":     {harness.Chain{Plugins: []harness.Source{a}, DefaultOffPlugins: []string{"C"}}, nil, `build chain: field DefaultOffPlugins of the Chain has "C", and Plugins has only A`},
		"both switches":       {harness.Chain{Plugins: []harness.Source{a}, EnablePlugins: []string{"A"}, DisablePlugins: []string{"A"}}, nil, `build chain: plugin "A" is in Chain.EnablePlugins and in Chain.DisablePlugins: an API server does not start with both`},
		"no built plugin":     {chain(of("A", nil)), nil, `build chain: build plugin "A": its factory returned neither a plugin nor an error`},
		"no phase":            {chain(of("A", admission.NewHandler())), nil, `build chain: build plugin "A": *admission.Handler is neither an admission.MutationInterface nor`},
		"configuration":       {chain(a), []harness.Option{harness.WithConfig("")}, "build chain: WithConfig is for one plugin: write a file and set ConfigFile of the Chain"},
		"foreign mutation":    {chain(a), []harness.Option{harness.WithForeignMutation(nil)}, "build harness: WithForeignMutation has a nil function"},
		"nil world":           {chain(a), []harness.Option{harness.WithWorld(nil)}, "build harness: WithWorld has a nil World"},
		"not initialized":     {chain(a, of("Demanding", &demanding{})), nil, `build chain: failed to initialize admission plugin "Demanding": it wants more: give what the plugin misses with harness.WithWorld`},
		"unused Injector":     {chain(a), []harness.Option{harness.WithInitializer(fakes.NewInitializer(nil, fakes.Inject("x", func(interface{ SetX() }) {})).Strict())}, "build chain: initialize plugins: "},
		"panic of a factory":  {chain(a, harness.FromFactory(func(io.Reader) (admission.Interface, error) { panic("broken") }).Named("B")), nil, "build chain: the factory panicked at "},
		"panic of validation": {chain(a, of("Demanding", &demanding{panics: true})), nil, `build chain: the initialization of plugin "Demanding" panicked at `},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := harness.BuildChain(t, test.chain, test.options...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
		})
	}
}

// demanding is a plugin that misses something.
type demanding struct {
	scripted
	panics bool
}

func (d *demanding) ValidateInitialization() error {
	if d.panics {
		panic("broken")
	}
	return errors.New("it wants more")
}

// configured is a plugin that sets its configuration as a label.
func configured(name string) harness.Source {
	return harness.FromFactory(func(config io.Reader) (admission.Interface, error) {
		if config == nil {
			return &scripted{Handler: admission.NewHandler(admission.Create), admit: label(name, "none", "")}, nil
		}
		text, err := io.ReadAll(config)
		if err == nil && strings.Contains(string(text), "wrong") {
			err = errors.New("it is wrong")
		}
		return &scripted{Handler: admission.NewHandler(admission.Create), admit: label(name, strings.TrimSpace(string(text)), "")}, err
	}).Named(name)
}

// A configuration file has the configurations of plugins, inline or in other files.
func TestConfigFile(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for name, test := range map[string]struct {
		file   string
		labels map[string]string
		want   string // an error
	}{
		"two ways": {
			header + "- {name: Inline, configuration: {a: b}}\n- {name: File, path: other.txt}\n- {name: Absent, path: missing.txt}\n",
			map[string]string{"Inline": `{"a":"b"}`, "File": "text", "Nothing": "none"}, "",
		},
		"refused":           {header + "- {name: Inline, configuration: wrong}", nil, `build chain: build plugin "Inline": its factory: it is wrong`},
		"no file of plugin": {header + "- {name: File, path: missing.txt}", nil, `the configuration of plugin "File": open `},
		"unknown field":     {header + "- {name: File, paht: other.txt}", nil, `unknown field "plugins[0].paht"`},
		"another kind":      {"apiVersion: v1\nkind: ConfigMap\n", nil, `no kind "ConfigMap" is registered`},
		"not YAML":          {"{", nil, "build chain: read Chain.ConfigFile "},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			made := chain(configured("Inline"), configured("File"), configured("Nothing"))
			made.ConfigFile = filepath.Join(folder, "admission.yaml")
			for path, text := range map[string]string{made.ConfigFile: test.file, filepath.Join(folder, "other.txt"): "text\n"} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h, err := harness.BuildChain(t, made)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v\nwant %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := harness.Mutated[*corev1.Pod](t, h.Do(framework.Create(pod("p"))).MustAllow(t)).Labels
			if diff := cmp.Diff(test.labels, got); diff != "" {
				t.Errorf("labels, -want +got:\n%s", diff)
			}
		})
	}
	if _, err := harness.BuildChain(t, harness.Chain{Plugins: []harness.Source{configured("A")}, ConfigFile: "missing.yaml"}); err == nil || !strings.Contains(err.Error(), `read Chain.ConfigFile "missing.yaml"`) {
		t.Errorf("error %v, want one about the missing file", err)
	}
}

// A goroutine of any plugin that outlives the drained notification is an error.
func TestCloseOfChain(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for _, listens := range []bool{true, false} {
		t.Run(fmt.Sprintf("listens %t", listens), func(t *testing.T) {
			w := &worker{scripted: scripted{Handler: admission.NewHandler(admission.Create)}, listens: listens, at: "Admit", release: release}
			h, err := harness.BuildChain(t, chain(plugin(nil, nil).Named("A"), of("Works", w)))
			if err != nil {
				t.Fatal(err)
			}
			h.Do(framework.Create(pod("p"))).MustAllow(t)
			ctx, cancel := context.WithCancel(t.Context())
			if !listens {
				cancel()
			}
			if err := h.Close(ctx); (err == nil) != listens {
				t.Errorf("a worker that listens: %t; Close returned %v", listens, err)
			}
			cancel()
		})
	}
}
