package fakes

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is one call that a client made.
type Call struct {
	// Verb is the API server's: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Resource and Subresource are what was called.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are those of the URL.
	Namespace, Name string
	// Object is the body of a create or update; nil for others.
	Object runtime.Object
	// Patch is the body of a patch.
	Patch []byte
	// DryRun is true for dryRun=All.
	DryRun bool
	// Err is what the caller got; nil for success.
	Err error
	// Context is the one that the call was made with.
	Context context.Context //nolint:containedctx // that it arrives is what a test asks
}

// Writes reports whether the call would change what is stored. Reviews
// (SubjectAccessReview and the like) are not stored.
func (c Call) Writes() bool { return false }

// String returns "create v1 namespaces/status default/name".
func (c Call) String() string { return "" }

// Calls are calls in the order in which they began.
type Calls []Call

// Has reports whether one has this verb and resource: "pods", "pods/status"; "*" is
// every one.
func (c Calls) Has(verb, resource string) bool { return false }

// Writes returns those that write.
func (c Calls) Writes() Calls { return nil }

// String returns them, a line each.
func (c Calls) String() string { return "" }
