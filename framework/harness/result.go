package harness

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Result is the outcome of a Request that a Harness carried out.
type Result struct {
	// Result has what a client sees: the Status, from the API server's ErrorToAPIStatus, the
	// Warnings, and the Object after mutation, in the type that the plugin got. Audit has the
	// annotations that the plugin added to the attributes or to the audit context.
	framework.Result
	// Err is the error that the plugin returned. It is nil if the plugin admitted the request.
	Err error
	// Before is the object that the plugin got: the object of the Request, with the fields that an
	// API server sets. Old is the old object as it was after the call.
	Before, Old runtime.Object
	// Calls are the calls that the World's clients made during the Request.
	Calls fakes.Calls
	// CacheEdits are the changes to cached objects. A plugin must not make any.
	CacheEdits []fakes.Mutation
	// Reinvoked is true if the plugin was called again in the mutating phase.
	Reinvoked bool

	harness    *Harness
	attributes admission.Attributes
	verb       framework.Verb
	// notCalled says why the plugin was not called. Empty means that the plugin was called.
	notCalled string
}

// MustAllow ends the test unless the plugin was called and admitted the Request. If the plugin does
// not handle the operation, use MustIgnore instead. Changes to cached objects also fail the test.
// It returns the Result.
func (r Result) MustAllow(t framework.T) Result {
	t.Helper()
	if r.Err != nil || !r.Allowed() || r.notCalled != "" {
		t.Fatalf("%s", r.report("admitted"))
	}
	r.mustLeaveCaches(t)
	return r
}

// MustReject ends the test unless the Request was refused with this reason and a message that
// contains all these texts. Changes to cached objects also fail the test. It returns the Result.
func (r Result) MustReject(t framework.T, reason metav1.StatusReason, contains ...string) Result {
	t.Helper()
	met := r.Err != nil && r.Status.Reason == reason
	expected := "rejected as " + cmp.Or(string(reason), "Unknown")
	for at, part := range contains {
		met = met && strings.Contains(r.Status.Message, part)
		if at == 0 {
			expected += ", with a message that contains "
		} else {
			expected += " and "
		}
		expected += fmt.Sprintf("%q", part)
	}
	if !met {
		t.Fatalf("%s", r.report(expected))
	}
	r.mustLeaveCaches(t)
	return r
}

// MustIgnore ends the test if the plugin was called. Use it for requests that an API server admits
// without a call, because the plugin does not handle the operation or, for [Harness.Admit] and
// [Harness.Validate], does not have the method. It returns the Result.
func (r Result) MustIgnore(t framework.T) Result {
	t.Helper()
	if r.notCalled == "" {
		t.Fatalf("%s", r.report("no call of the plugin"))
	}
	return r
}

func (r Result) mustLeaveCaches(t framework.T) {
	t.Helper()
	if len(r.CacheEdits) > 0 {
		t.Errorf("%s", r.report("unchanged cached objects: all readers of the cache share them"))
	}
}

// String returns the request and its outcome, in several lines.
func (r Result) String() string { return r.report("") }

// report returns the text of a failure.
func (r Result) report(expected string) string {
	text := &strings.Builder{}
	text.WriteString(r.asked())
	if expected != "" {
		text.WriteString("\nexpected: " + expected)
	}
	text.WriteString("\nactual:   " + r.actual())
	for _, warning := range r.Warnings {
		text.WriteString("\nwarning:  " + warning)
	}
	for at, call := range calls(r.Trace) {
		heading := "          "
		if at == 0 {
			heading = "plugins:  "
		}
		text.WriteString("\n" + heading + call)
	}
	for at, call := range r.Calls {
		heading := "          "
		if at == 0 {
			heading = "calls:    "
		}
		text.WriteString("\n" + heading + call.String())
		if call.Err != nil {
			text.WriteString(": " + call.Err.Error())
		}
	}
	for _, edit := range r.CacheEdits {
		text.WriteString("\nchanged in the cache: " + edit.String())
	}
	return text.String()
}

func (r Result) actual() string {
	switch {
	case r.attributes == nil:
		return "not carried out"
	case r.notCalled != "":
		return fmt.Sprintf("%s, so an API server admits the request without a call (if that is intended, use MustIgnore)", r.notCalled)
	case r.Err == nil:
		return fmt.Sprintf("admitted (%d)", r.Status.Code)
	}
	text := fmt.Sprintf("%d %s: %s", r.Status.Code, cmp.Or(string(r.Status.Reason), "Unknown"), r.Status.Message)
	if _, ok := r.Err.(apierrors.APIStatus); !ok { // like the API server, this does not unwrap the error
		text += fmt.Sprintf("\n          (the plugin's error is a %T, which has no Status: use admission.NewForbidden or k8s.io/apimachinery/pkg/api/errors)", r.Err)
	}
	return text
}

// asked returns a line such as "create v1 pods default/p by admissiontest".
func (r Result) asked() string {
	a := r.attributes
	if a == nil {
		return "a Result that no Harness made"
	}
	verb := string(r.verb)
	if verb == "" {
		verb = strings.ToLower(string(a.GetOperation()))
	}
	text := verb + " " + a.GetResource().GroupVersion().String() + " " + a.GetResource().Resource
	if a.GetSubresource() != "" {
		text += "/" + a.GetSubresource()
	}
	object := a.GetName()
	if object == "" {
		object = "(no name)"
	}
	if a.GetNamespace() != "" {
		object = a.GetNamespace() + "/" + object
	}
	text += " " + object
	if who := a.GetUserInfo(); who != nil {
		text += " by " + who.GetName()
	}
	if a.IsDryRun() {
		text += " (dry run)"
	}
	return text
}

// Again calls Admit again as in a reinvocation, with a copy of Object and new attributes. A panic
// of the plugin ends the test of the Harness.
func (r Result) Again() Result {
	if r.harness == nil {
		return r
	}
	r.harness.t.Helper()
	a := r.attributes
	record := admission.NewAttributesRecord(copyOf(r.Object), copyOf(r.Old), a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(),
		a.GetSubresource(), a.GetOperation(), copyOf(a.GetOperationOptions()), a.IsDryRun(), a.GetUserInfo())
	record.GetReinvocationContext().SetIsReinvoke()
	again, err := r.harness.call(context.Background(), record, framework.Mutating, r.harness.plugin)
	if err != nil {
		r.harness.t.Fatalf("carry out again %s: %v", r.asked(), err)
		return Result{}
	}
	again.verb, again.Reinvoked = r.verb, true
	return again
}

// Mutated returns the object after mutation in its Go type T. It ends the test if the object has
// another type.
func Mutated[T runtime.Object](t framework.T, r Result) (object T) {
	t.Helper()
	object, ok := r.Object.(T)
	if !ok {
		t.Fatalf("%s", r.report(fmt.Sprintf("an object of type %s, got %T", reflect.TypeFor[T](), r.Object)))
	}
	return object
}
