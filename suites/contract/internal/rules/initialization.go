package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// moment is how long goroutines that end by themselves may take.
const moment = 200 * time.Millisecond

// initializationRules returns the rules for what is injected into a plugin.
func initializationRules() []check.Rule {
	return append([]check.Rule{
		{
			ID: "I1", Name: "missing-dependencies-are-reported", Level: framework.Must,
			Title:  "If something that the plugin needs was not injected, ValidateInitialization returns an error that names it.",
			Why:    "ValidateInitialization is the only protection against a nil pointer at the first request. Plugins that returned nil by mistake, or got a nil factory, crashed the API server.",
			Fix:    "Return an error from ValidateInitialization for each field that an injection sets and that is nil.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/110125", "https://github.com/kubernetes/kubernetes/issues/50661"},
			Check:  checkOmissions,
		},
		{
			ID: "I2", Name: "validate-initialization-only-looks", Level: framework.Should,
			Title:  "ValidateInitialization has no side effects: called again, it returns the same result and starts nothing.",
			Why:    "The API server calls it, and code that wraps the plugin calls it too. Whatever it starts then runs twice. Kubernetes' own ValidatingAdmissionPolicy and MutatingAdmissionPolicy plugins break this rule: a second call makes a second policy source and more goroutines.",
			Fix:    "Only compare fields in ValidateInitialization. Start goroutines in a setter, or here with sync.Once if they need what several setters store, and end them at the drained notification.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#InitializationValidator", "https://github.com/kubernetes/kubernetes/issues/110246"},
			Check:  checkValidateInitialization,
		},
		{
			ID: "I3", Name: "injection-order-does-not-matter", Level: framework.Should,
			Title:  "The order of injection does not matter.",
			Why:    "Each API server has its own initializers in its own order. A setter that uses what another setter stores works only in some of them.",
			Fix:    "Let setters only store what they get, and combine it in ValidateInitialization or at the first request.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#PluginInitializers"},
			Check:  checkOrders,
		},
		{
			ID: "I4", Name: "setters-are-called-once", Level: framework.Should,
			Title:  "Each Set and Inspect method of a plugin is called by an initializer, exactly once.",
			Why:    "A setter with a slightly different signature satisfies no Wants interface and is never called, without any error. Two initializers for the same interface overwrite each other.",
			Fix:    "Correct the signature of the setter, or unexport it if no initializer should call it.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission/initializer", "https://github.com/kubernetes/kubernetes/issues/49891"},
			Check:  checkSetters,
		},
	}, gateRules()...)
}

// injected returns the interfaces by which the plugin was injected. The check is unsupported
// if there are none.
func injected(t *check.T) []string {
	names := check.InjectedNames(t.Plugin().Initializer().Log())
	if len(names) == 0 {
		t.Unsupported("nothing is injected into the plugin")
	}
	return names
}

func checkOmissions(t *check.T) {
	names := injected(t)
	t.Reached()
	if !refusesWithout(t, "all of "+strings.Join(names, ", "), names...) {
		return
	}
	if len(names) == 1 {
		return
	}
	for _, name := range names {
		refusesWithout(t, name, name)
	}
}

// refusesWithout injects everything except some interfaces, and reports if
// ValidateInitialization accepts that. It returns false if the plugin has no such method.
func refusesWithout(t *check.T, missing string, names ...string) bool {
	plugin, w := t.NewPlugin(), t.World()
	initializer := t.Initializer(w).Skip(names...)
	defer initializer.Drain()
	initializer.Initialize(plugin)
	err, thrown, exists := check.ValidateInitialization(plugin)
	switch {
	case !exists:
		t.Errorf("%s is injected into the plugin, which has no ValidateInitialization: nothing detects a missing injection", missing)
	case thrown != nil:
		t.Errorf("without %s ValidateInitialization panicked (%v), want an error that says what is missing", missing, thrown)
	case err == nil && initializer.Err() != nil:
		t.Errorf("without %s ValidateInitialization returned nil, but: %v", missing, initializer.Err())
	case err == nil:
		t.Errorf("without %s ValidateInitialization returned nil, want an error that says what is missing", missing)
	case strings.TrimSpace(err.Error()) == "":
		t.Errorf("without %s the error of ValidateInitialization is empty, want one that says what is missing", missing)
	}
	return exists
}

func checkValidateInitialization(t *check.T) {
	h := t.Plugin()
	const times = 3
	first, thrown, exists := check.ValidateInitialization(t.NewPlugin())
	if !exists {
		t.Unsupported("the plugin has no ValidateInitialization")
	}
	t.Reached()
	started := processes.NewLabel()
	started.Do(func() {
		for n := range times {
			if err, thrown, _ := check.ValidateInitialization(h.Plugin()); err != nil || thrown != nil {
				t.Errorf("ValidateInitialization of an initialized plugin returned nil, and when called again (%d): %v", n+1, firstOf(err, thrown))
			}
		}
	})
	if left := check.GoroutinesLeft(t.Context(), moment, started.Running); len(left) > 0 {
		t.Errorf("ValidateInitialization, called again, started goroutines:\n%s\nwant: it starts nothing a second time. Start them in a setter, or with sync.Once", strings.Join(left, "\n"))
	}
	if thrown != nil {
		t.Logf("without any injection ValidateInitialization panicked: %v", thrown)
		return
	}
	plugin := t.NewPlugin()
	for range times {
		err, thrown, _ := check.ValidateInitialization(plugin)
		if thrown != nil || (err == nil) != (first == nil) {
			t.Errorf("ValidateInitialization of a plugin without any injection returned %q, and when called again: %v", fmt.Sprint(first), firstOf(err, thrown))
			return
		}
	}
}

// firstOf returns the error, or the panic.
func firstOf(err error, thrown any) any {
	if thrown != nil {
		return fmt.Sprintf("panic: %v", thrown)
	}
	return err
}

func checkOrders(t *check.T) {
	if names := injected(t); len(names) == 1 {
		t.Unsupported("only %s is injected into the plugin: there is no other order", names[0])
	}
	expected := t.SendAll(t.Plugin())
	orders := []fakes.Order{fakes.Reverse()}
	for seed := range uint64(4) {
		orders = append(orders, fakes.Shuffled(seed))
	}
	for _, order := range orders {
		w := t.World()
		initializer := t.Initializer(w).InOrder(order)
		h, err := t.BuildWith(w, initializer)
		when := "after the injection of " + strings.Join(check.InjectedNames(initializer.Log()), ", ") + ", in this order"
		t.Reached()
		if err != nil {
			t.Errorf("build the plugin %s: %v", when, err)
			return
		}
		t.CompareResponses(when, expected, t.SendAll(h), func() []check.Response { return t.SendAll(t.Plugin()) })
	}
}

func checkSetters(t *check.T) {
	plugin := t.NewPlugin()
	initializer := wantedInitializer(t).Strict()
	defer initializer.Drain()
	initializer.Initialize(plugin)
	err := initializer.Err()
	if err == nil && len(initializer.Log()) == 0 {
		t.Unsupported("nothing is injected into the plugin")
	}
	t.Reached()
	if err != nil {
		t.Errorf("%v", err)
	}
}

// wantedInitializer returns an initializer without the injectors of the Subject that the plugin
// does not want: a project has one list of injectors for all its plugins.
func wantedInitializer(t *check.T) *fakes.Initializer {
	first := t.Initializer(t.World())
	defer first.Drain()
	first.Initialize(t.NewPlugin())
	wanted := check.InjectedNames(first.Log())
	w := t.World()
	var injectors []fakes.Injector
	if t.Subject.Inject != nil {
		injectors = t.Subject.Inject(w)
	}
	return fakes.NewInitializer(w, slices.DeleteFunc(slices.Clone(injectors), func(each fakes.Injector) bool {
		return !slices.Contains(wanted, each.Name())
	})...)
}
