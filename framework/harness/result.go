package harness

import (
	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Result is what came of a Request.
type Result struct {
	// Result has what a client would see: the Status, by the API server's
	// ErrorToAPIStatus; Object, after mutation, of the type the plugin was given;
	// Warnings; Audit, with annotations of Attributes and of the audit context.
	framework.Result
	// Err is the error that the plugin returned; nil when it admitted.
	Err error
	// Before is Object as the Request has it. Old is the old object as the plugin left it.
	Before, Old runtime.Object
	// Calls are what the plugin called with the World's clients meanwhile.
	Calls fakes.Calls
	// CacheEdits are the changes it made to cached objects, which it must not.
	CacheEdits []fakes.Mutation
	// Reinvoked is true when the plugin asked for a reinvocation and got it.
	Reinvoked bool
}

// MustAllow ends the test unless the Request was admitted.
func (r Result) MustAllow(t framework.T) Result { return r }

// MustReject ends the test unless the Request was refused with this reason and a
// message that contains all of these.
func (r Result) MustReject(t framework.T, reason metav1.StatusReason, contains ...string) Result {
	return r
}

// Changes returns the paths of what the plugin changed in the object, sorted:
// "spec.tolerations[0]", "metadata.annotations[example.com/a]". It compares JSON
// forms; types without JSON names (internal types) give the names of their fields,
// the first letter in lower case.
func (r Result) Changes() []string { return nil }

// Again carries out the mutating phase once more on the object that came back, as a
// reinvocation.
func (r Result) Again() Result { return r }

// Mutated returns the object after mutation, as a T; else it ends the test.
func Mutated[T runtime.Object](t framework.T, r Result) (object T) { return object }
