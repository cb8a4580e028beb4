package rules

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// handlesRules returns the rules for Handles and for the choice between Admit and Validate.
func handlesRules() []check.Rule {
	return []check.Rule{
		{
			ID: "H1", Name: "handles-is-consistent", Level: framework.Must,
			Title:  "Handles always returns the same value for an operation, from any goroutine: true for at least one operation, and false for an unknown operation.",
			Why:    "The API server calls Handles before each call and skips the plugin if it returns false. A plugin that returns true too often gets objects that it does not expect, including nil.",
			Fix:    "Embed *admission.Handler, created by admission.NewHandler with the operations that the plugin supports.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/8233", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Interface"},
			Check:  checkHandles,
		},
		{
			ID: "H3", Name: "refusals-belong-in-validate", Level: framework.Should,
			Title:  "A plugin that only refuses does so in Validate. Admit is for plugins that change the object or write.",
			Why:    "Later plugins and webhooks can still change what Admit has checked. Gardener moved several checks from Admit to Validate and found side effects while doing so.",
			Fix:    "Move the check from Admit to Validate.",
			Source: []string{"https://github.com/gardener/gardener/issues/537", "https://github.com/gardener/gardener/pull/13156"},
			Check:  checkAdmitMutates,
		},
	}
}

// operations returns the operations of an API server.
func operations() []admission.Operation {
	return []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}
}

const (
	handlesCalls     = 100     // calls of Handles for each operation
	handlesCallers   = 4       // goroutines that make them
	unknownOperation = "BOGUS" // an operation that does not exist
)

func checkHandles(t *check.T) {
	var config io.Reader
	if t.Subject.Config != "" {
		config = strings.NewReader(t.Subject.Config)
	}
	bare, err := t.Subject.Source.Plugin(config)
	if err != nil {
		t.Fatalf("%v", err)
	}
	before, ok := callHandles(t, bare, "before its initialization")
	if !ok {
		return
	}
	h := t.Plugin()
	after, ok := callHandles(t, h.Plugin(), "after its initialization")
	if !ok {
		return
	}
	t.Reached()
	if !slices.Contains(slices.Collect(maps.Values(after)), true) {
		t.Errorf("Handles is false for every operation: an API server never calls the plugin. want true for at least one")
	}
	if after[unknownOperation] {
		t.Errorf("Handles(%q) is true, want false: the operation does not exist", unknownOperation)
	}
	sameHandles(t, before, after, "before its initialization", "after its initialization")
	for _, request := range t.Requests() {
		t.Do(h, request)
	}
	if later, ok := callHandles(t, h.Plugin(), "after requests"); ok {
		sameHandles(t, after, later, "before requests", "after requests")
	}
}

func sameHandles(t *check.T, was, is map[admission.Operation]bool, first, second string) {
	for _, operation := range slices.Sorted(maps.Keys(was)) {
		if was[operation] != is[operation] {
			t.Errorf("Handles(%q) is %t %s and %t %s, want always the same value", operation, was[operation], first, is[operation], second)
		}
	}
}

// callHandles calls Handles many times from several goroutines. It returns false if that
// fails.
func callHandles(t *check.T, plugin admission.Interface, when string) (values map[admission.Operation]bool, ok bool) {
	var group sync.WaitGroup
	var lock sync.Mutex
	values = map[admission.Operation]bool{}
	wrong := map[string]bool{}
	call := func() {
		defer group.Done()
		defer func() {
			if thrown := recover(); thrown != nil {
				lock.Lock()
				defer lock.Unlock()
				wrong[fmt.Sprintf("Handles, called %s, panicked: %v", when, thrown)] = true
			}
		}()
		for range handlesCalls / handlesCallers {
			for _, operation := range append(operations(), unknownOperation) {
				value := plugin.Handles(operation)
				lock.Lock()
				if earlier, known := values[operation]; known && earlier != value {
					wrong[fmt.Sprintf("Handles(%q), called several times %s, is true and false, want always the same value", operation, when)] = true
				}
				values[operation] = value
				lock.Unlock()
			}
		}
	}
	for range handlesCallers {
		group.Add(1)
		go call()
	}
	group.Wait()
	for _, text := range slices.Sorted(maps.Keys(wrong)) {
		t.Errorf("%s", text)
	}
	return values, len(wrong) == 0
}

func checkAdmitMutates(t *check.T) {
	refused, useful := "", false
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		result, thrown := t.Call(invocation.Harness, invocation.Attributes.Record(), framework.Mutating)
		switch {
		case thrown != nil:
		case result.Err != nil && refused == "":
			refused = fmt.Sprintf("%s was refused by Admit (%s)", invocation.Request, result.Status.Message)
		case !check.Equal(result.Before, result.Object) || len(result.Calls.Writes()) > 0:
			useful = true
		}
	})
	switch {
	case useful:
		t.Reached()
	case refused != "":
		t.Reached()
		t.Errorf("Admit only refuses: it changed no object and wrote nothing for any request of the Subject. want: refuse in Validate, which gets the object that will be stored. If Admit changes objects, add a request to the Subject that shows it\n%s", refused)
	default:
		t.Logf("Admit changed nothing, wrote nothing and refused nothing")
	}
}
