package harness

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Result is what came of a Request.
type Result struct {
	// Result has what a client would see: the Status, by the API server's
	// ErrorToAPIStatus; Object, after mutation, of the type the plugin was given;
	// Warnings; Audit, with annotations of Attributes and of the audit context.
	framework.Result
	// Err is the error that the plugin returned; nil when it admitted.
	Err error
	// Before is Object as the plugin was given it: that of the Request, with what an
	// API server fills in. Old is the old object as the plugin left it.
	Before, Old runtime.Object
	// Calls are what the plugin called with the World's clients meanwhile.
	Calls fakes.Calls
	// CacheEdits are the changes it made to cached objects, which it must not.
	CacheEdits []fakes.Mutation
	// Reinvoked is true when the plugin asked for a reinvocation and got it.
	Reinvoked bool

	harness    *Harness
	attributes admission.Attributes
	verb       framework.Verb
}

// MustAllow ends the test unless the Request was admitted. Changes to cached objects
// fail it.
func (r Result) MustAllow(t framework.T) Result {
	t.Helper()
	if r.Err != nil || !r.Allowed() {
		t.Fatalf("%s", r.report("admitted"))
	}
	r.mustLeaveCaches(t)
	return r
}

// MustReject ends the test unless the Request was refused with this reason and a
// message that contains all of these. Changes to cached objects fail it.
func (r Result) MustReject(t framework.T, reason metav1.StatusReason, contains ...string) Result {
	t.Helper()
	met := r.Err != nil && r.Status.Reason == reason
	expected := "rejected as " + name(reason)
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

func (r Result) mustLeaveCaches(t framework.T) {
	t.Helper()
	if len(r.CacheEdits) > 0 {
		t.Errorf("%s", r.report("cached objects as they were: they belong to all who read them"))
	}
}

// String tells what was asked and what came of it, a line each.
func (r Result) String() string { return r.report("") }

// report is the text of a failure.
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
	case r.Err == nil:
		return fmt.Sprintf("admitted (%d)", r.Status.Code)
	}
	text := fmt.Sprintf("%d %s: %s", r.Status.Code, name(r.Status.Reason), r.Status.Message)
	if _, ok := r.Err.(interface{ Status() metav1.Status }); !ok { // the API server does not unwrap either
		text += fmt.Sprintf("\n          (the plugin's error is a %T and no Status: use admission.NewForbidden or k8s.io/apimachinery/pkg/api/errors)", r.Err)
	}
	return text
}

// name is how texts call a reason: metav1.StatusReasonUnknown is empty.
func name(reason metav1.StatusReason) string {
	if reason == metav1.StatusReasonUnknown {
		return "Unknown"
	}
	return string(reason)
}

// asked is "create v1 pods default/p by admissiontest".
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

// Again carries out the mutating phase once more on a copy of the object that came
// back, as a reinvocation: the record is a new one that says so. A panic of the plugin
// ends the test of its Harness.
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

// Mutated returns the object after mutation, as a T; else it ends the test.
func Mutated[T runtime.Object](t framework.T, r Result) (object T) {
	t.Helper()
	object, ok := r.Object.(T)
	if !ok {
		t.Fatalf("%s", r.report(fmt.Sprintf("an object of type %s, got %T", reflect.TypeFor[T](), r.Object)))
	}
	return object
}
