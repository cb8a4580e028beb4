package rules

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// handlesProperties returns the properties of this file.
func handlesRules() []check.Rule {
	return []check.Rule{
		{
			ID: "H1", Name: "handles-is-consistent", Level: framework.Must,
			Title:  "Handles answers the same for the same operation at any time and from any goroutine: true for one operation or more, false for what is none.",
			Why:    "the chain asks Handles before every call and skips the plugin for an answer of false; one that says true too often is handed objects that it does not expect, a nil one among them",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/8233", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Interface"},
			Check:  checkHandles,
		},
		{
			ID: "H2", Name: "unhandled-operations-are-ignored", Level: framework.Should,
			Title:  "Called for an operation that it does not handle, the plugin does nothing: no panic, no refusal, no change, no write.",
			Why:    "not everybody who holds a plugin asks Handles first: decorators and tests call it directly",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/8233"},
			Check:  checkUnhandled,
		},
		{
			ID: "H3", Name: "refusals-belong-in-validate", Level: framework.Should,
			Title:  "A plugin that only refuses does so in Validate: Admit is for those that change the object or write.",
			Why:    "what Admit has looked at can still be changed by every plugin and webhook after it; gardener moved several checks from Admit to Validate, and found side effects on the way",
			Source: []string{"https://github.com/gardener/gardener/issues/537", "https://github.com/gardener/gardener/pull/13156"},
			Check:  checkAdmitMutates,
		},
	}
}

// operations are those that an API server knows.
func operations() []admission.Operation {
	return []admission.Operation{admission.Create, admission.Update, admission.Delete, admission.Connect}
}

const (
	askings      = 100     // of Handles, for one operation
	askers       = 4       // goroutines that do
	notOperation = "BOGUS" // is no operation
)

func checkHandles(t *check.T) {
	t.RequirePlugin()
	var config io.Reader
	if t.Subject.Config != "" {
		config = strings.NewReader(t.Subject.Config)
	}
	bare, err := t.Subject.Source.Plugin(config)
	if err != nil {
		t.Fatalf("%v", err)
	}
	before, ok := askHandles(t, bare, "before its initialization")
	if !ok {
		return
	}
	h := t.Plugin()
	after, ok := askHandles(t, h.Plugin(), "after its initialization")
	if !ok {
		return
	}
	t.Reached()
	if !slices.Contains(slices.Collect(maps.Values(after)), true) {
		t.Errorf("Handles says false for every operation: nothing would ever call the plugin")
	}
	if after[notOperation] {
		t.Errorf("Handles(%q) is true, which is no operation: expected false for all but CREATE, UPDATE, DELETE and CONNECT", notOperation)
	}
	sameHandles(t, before, after, "before its initialization", "after it")
	for _, request := range t.Requests() {
		t.Do(h, request)
	}
	if later, ok := askHandles(t, h.Plugin(), "after requests"); ok {
		sameHandles(t, after, later, "before any request", "after some")
	}
}

func sameHandles(t *check.T, was, is map[admission.Operation]bool, first, second string) {
	for _, operation := range slices.Sorted(maps.Keys(was)) {
		if was[operation] != is[operation] {
			t.Errorf("Handles(%q) is %t %s and %t %s: expected one answer for ever", operation, was[operation], first, is[operation], second)
		}
	}
}

// askHandles asks a plugin what it handles, often and from many goroutines.
func askHandles(t *check.T, plugin admission.Interface, when string) (answers map[admission.Operation]bool, ok bool) {
	var group sync.WaitGroup
	var lock sync.Mutex
	answers = map[admission.Operation]bool{}
	wrong := map[string]bool{}
	ask := func() {
		defer group.Done()
		defer func() {
			if thrown := recover(); thrown != nil {
				lock.Lock()
				defer lock.Unlock()
				wrong[fmt.Sprintf("Handles, called %s, panicked: %v", when, thrown)] = true
			}
		}()
		for range askings / askers {
			for _, operation := range append(operations(), notOperation) {
				answer := plugin.Handles(operation)
				lock.Lock()
				if earlier, asked := answers[operation]; asked && earlier != answer {
					wrong[fmt.Sprintf("Handles(%q), called %s time and again, is true and false: expected one answer for ever", operation, when)] = true
				}
				answers[operation] = answer
				lock.Unlock()
			}
		}
	}
	for range askers {
		group.Add(1)
		go ask()
	}
	group.Wait()
	for _, text := range slices.Sorted(maps.Keys(wrong)) {
		t.Errorf("%s", text)
	}
	return answers, len(wrong) == 0
}

func checkUnhandled(t *check.T) {
	plugin := t.Plugin().Plugin()
	all := true
	for _, operation := range operations() {
		if plugin.Handles(operation) {
			continue
		}
		all = false
		checkUnhandledBy(t, operation)
	}
	if all {
		t.Unsupported("the plugin handles every operation")
	}
}

// checkUnhandledBy calls a plugin for an operation that it does not handle, with the
// objects of all requests.
func checkUnhandledBy(t *check.T, operation admission.Operation) {
	h := t.Plugin()
	told := map[framework.Phase]bool{} // one request of many will do
	for _, request := range t.Requests() {
		for _, phase := range check.Phases() {
			given, ok := t.AttributesFor(h, request, phase)
			if !ok || told[phase] || !check.HasPhase(h.Plugin(), phase) || given.Operation == admission.Connect {
				continue
			}
			given = asOperation(given, operation)
			before := check.TakeSnapshot(given)
			result, thrown := t.Call(h, given.Record(), phase)
			t.Reached()
			var text string
			switch {
			case thrown != nil:
				text = thrown.Error()
			case check.Effect(result) != "":
				text = "it " + check.Effect(result)
			default:
				text = before.Changes()
			}
			if text != "" {
				told[phase] = true
				t.Errorf("%s: the plugin does not handle %s, but called for it all the same, %s\nexpected %s to do nothing", given, operation, text, check.MethodOf(phase))
			}
		}
	}
}

// as makes another operation of attributes, on the same object, in the shape that an
// API server gives it.
func asOperation(f check.Attributes, operation admission.Operation) check.Attributes {
	object := f.Object
	if objects.IsNil(object) {
		object = f.OldObject
	}
	f.Operation, f.Object, f.OldObject = operation, nil, nil
	switch operation {
	case admission.Create:
		f.Object, f.Options = object, &metav1.CreateOptions{}
	case admission.Update:
		f.Object, f.OldObject, f.Options = object, check.Copy(object), &metav1.UpdateOptions{}
	case admission.Delete:
		f.OldObject, f.Options = object, &metav1.DeleteOptions{}
	case admission.Connect:
		f.Object, f.Options, f.Subresource = &corev1.PodProxyOptions{}, nil, "proxy"
		f.Kind, f.DryRun = corev1.SchemeGroupVersion.WithKind("PodProxyOptions"), false
	}
	return f
}

func checkAdmitMutates(t *check.T) {
	refused, useful := "", false
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		result, thrown := t.Call(invocation.Harness, invocation.Attributes.Record(), framework.Mutating)
		switch {
		case thrown != nil:
		case result.Err != nil && refused == "":
			refused = fmt.Sprintf("%s: Admit refused it (%s)", invocation.Request, result.Status.Message)
		case !check.Equal(result.Before, result.Object) || len(result.Calls.Writes()) > 0:
			useful = true
		}
	})
	switch {
	case useful:
		t.Reached()
	case refused != "":
		t.Reached()
		t.Errorf("Admit changed no object and wrote nothing, for any request of the Subject, but refused: expected such a plugin to refuse in Validate, which sees the object as it will be stored (if there are requests whose objects it changes, add one)\n%s", refused)
	default:
		t.Logf("Admit changed nothing, wrote nothing and refused nothing")
	}
}
