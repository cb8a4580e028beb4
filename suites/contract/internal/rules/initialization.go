package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/goroutines"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// moment is how long goroutines may take that end by themselves.
const moment = 200 * time.Millisecond

// initializationProperties returns the properties of what a plugin is given.
func initializationRules() []check.Rule {
	return append([]check.Rule{
		{
			ID: "I1", Name: "missing-dependencies-are-reported", Level: framework.Must,
			Title:  "ValidateInitialization fails when anything that the plugin asks for is missing, and says so.",
			Why:    "It is all that stands between a forgotten initializer and a nil pointer at the first request: plugins whose ValidateInitialization returned nil by mistake, or that were given a nil factory, took the API server down.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/110125", "https://github.com/kubernetes/kubernetes/issues/50661"},
			Check:  checkOmissions,
		},
		{
			ID: "I2", Name: "validate-initialization-only-looks", Level: framework.Should,
			Title:  "ValidateInitialization only looks: called again it says the same and begins nothing.",
			Why:    "It is called by the API server and by whoever wraps the plugin. What it begins then runs twice.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#InitializationValidator", "https://github.com/kubernetes/kubernetes/issues/110246"},
			Check:  checkValidateInitialization,
		},
		{
			ID: "I3", Name: "injection-order-does-not-matter", Level: framework.Should,
			Title:  "A plugin is the same in whatever order it was given what it asks for.",
			Why:    "Every API server has initializers of its own and an order of its own. A setter that uses what another setter brings works in one of them.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#PluginInitializers"},
			Check:  checkOrders,
		},
		{
			ID: "I4", Name: "setters-are-called-once", Level: framework.Should,
			Title:  "Every Set and Inspect method of a plugin is called by an initializer, and only once.",
			Why:    "A setter whose signature is a little wrong satisfies no Wants interface, and nobody says so: it is never called. Two initializers that know the same interface overwrite one another.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission/initializer", "https://github.com/kubernetes/kubernetes/issues/49891"},
			Check:  checkSetters,
		},
	}, gateRules()...)
}

// given returns what a plugin of the Subject was given; nothing is unsupported.
func injected(t *check.T) []string {
	names := check.InjectedNames(t.Plugin().Initializer().Log())
	if len(names) == 0 {
		t.Unsupported("the plugin asks for nothing")
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

// refusesWithout says whether ValidateInitialization is there, and reports where it is
// content with a plugin that was not given these.
func refusesWithout(t *check.T, missing string, names ...string) bool {
	plugin, w := t.NewPlugin(), t.World()
	initializer := t.Initializer(w).Skip(names...)
	defer initializer.Drain()
	initializer.Initialize(plugin)
	err, thrown, existing := check.ValidateInitialization(plugin)
	switch {
	case !existing:
		t.Errorf("the plugin asks for %s and has no ValidateInitialization() error: nothing tells when it was not given", missing)
	case thrown != nil:
		t.Errorf("without %s ValidateInitialization panicked (%v): expected an error that says what is missing", missing, thrown)
	case err == nil && initializer.Err() != nil:
		t.Errorf("without %s ValidateInitialization said that all is well, and: %v", missing, initializer.Err())
	case err == nil:
		t.Errorf("without %s ValidateInitialization said that all is well: expected an error that says what is missing", missing)
	case strings.TrimSpace(err.Error()) == "":
		t.Errorf("without %s the error of ValidateInitialization is empty: expected one that says what is missing", missing)
	}
	return existing
}

func checkValidateInitialization(t *check.T) {
	h := t.Plugin()
	const times = 3
	first, thrown, existing := check.ValidateInitialization(t.NewPlugin())
	if !existing {
		t.Unsupported("the plugin has no ValidateInitialization")
	}
	t.Reached()
	started := goroutines.NewLabel()
	started.Do(func() {
		for n := range times {
			if err, thrown, _ := check.ValidateInitialization(h.Plugin()); err != nil || thrown != nil {
				t.Errorf("ValidateInitialization of an initialized plugin passed, and when called again (%d) it said: %v", n+1, firstOf(err, thrown))
			}
		}
	})
	if left := check.GoroutinesLeft(t.Context(), moment, started.Running); len(left) > 0 {
		t.Errorf("ValidateInitialization, called again, began goroutines:\n%s\nexpected that it only looks: begin them in a setter, or once", strings.Join(left, "\n"))
	}
	if thrown != nil {
		t.Logf("without anything ValidateInitialization panicked: %v", thrown)
		return
	}
	plugin := t.NewPlugin()
	for range times {
		err, thrown, _ := check.ValidateInitialization(plugin)
		if thrown != nil || fmt.Sprint(err) != fmt.Sprint(first) {
			t.Errorf("ValidateInitialization of a plugin that was given nothing said %q, and when called again: %v", fmt.Sprint(first), firstOf(err, thrown))
			return
		}
	}
}

// firstOf is the error, or the panic.
func firstOf(err error, thrown any) any {
	if thrown != nil {
		return fmt.Sprintf("panic: %v", thrown)
	}
	return err
}

func checkOrders(t *check.T) {
	if names := injected(t); len(names) == 1 {
		t.Unsupported("the plugin asks for %s alone: there is no other order", names[0])
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
		when := "after it was given " + strings.Join(check.InjectedNames(initializer.Log()), ", ") + ", in this order"
		t.Reached()
		if err != nil {
			t.Errorf("the plugin cannot be had %s: %v", when, err)
			return
		}
		t.CompareResponses(when, expected, t.SendAll(h), func() []check.Response { return t.SendAll(t.Plugin()) })
	}
}

func checkSetters(t *check.T) {
	t.RequirePlugin()
	plugin := t.NewPlugin()
	initializer := t.Initializer(t.World()).Strict()
	defer initializer.Drain()
	initializer.Initialize(plugin)
	err := initializer.Err()
	if err == nil && len(initializer.Log()) == 0 {
		t.Unsupported("the plugin asks for nothing")
	}
	t.Reached()
	if err != nil {
		t.Errorf("%v", err)
	}
}
