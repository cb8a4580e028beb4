package fakes

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Call is one call that a client made.
type Call struct {
	// Verb is the API server's: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Path is that of a URL which is of no resource ("/version"); else empty.
	Path string
	// Resource and Subresource are what was called.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are those of the URL. A namespace is in none.
	Namespace, Name string
	// Object is the body of a create or update; nil for others.
	Object runtime.Object
	// Patch is the body of a patch.
	Patch []byte
	// DryRun is true for dryRun=All.
	DryRun bool
	// Err is what the caller got; nil for success, and while the call goes on.
	Err error
	// Context is the one that the call was made with.
	Context context.Context //nolint:containedctx // that it arrives is what a test asks
}

// Writes reports whether the call would change what is stored. Reviews
// (SubjectAccessReview and the like) and tokens are not stored, nor is a dry run.
func (c Call) Writes() bool {
	switch c.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch c.Resource.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "imagepolicy.k8s.io":
		return !c.DryRun && !strings.HasSuffix(c.Resource.Resource, "reviews")
	case "":
		return !c.DryRun && (c.Resource.Resource != "serviceaccounts" || c.Subresource != "token")
	default:
		return !c.DryRun
	}
}

// String returns "create v1 namespaces/status default/name".
func (c Call) String() string {
	if c.Path != "" {
		return c.Verb + " " + c.Path
	}
	words := []string{c.Verb, c.Resource.GroupVersion().String(), join(c.Resource.Resource, c.Subresource)}
	name := c.Name
	if name == "" && c.Object != nil {
		name = metadata(c.Object).GetName() // that of a create is not in the URL
	}
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	if name != "" {
		words = append(words, name)
	}
	if c.DryRun {
		words = append(words, "(dry run)")
	}
	return strings.Join(words, " ")
}

// is reports whether the call is of a verb and resource as FailOn and Has name them.
func (c Call) is(verb, resource string) bool {
	if verb != "*" && verb != c.Verb {
		return false
	}
	if resource == "*" || c.Path != "" && resource == c.Path {
		return true
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	name, group, grouped := strings.Cut(resource, ".")
	return c.Path == "" && (name == "*" || name == c.Resource.Resource) &&
		(!grouped || group == c.Resource.Group) &&
		(subresource == "*" || subresource == c.Subresource)
}

// Calls are calls in the order in which they began.
type Calls []Call

// Has reports whether one has this verb and resource: "pods", "deployments.apps",
// "pods/status"; "*" is every one, "pods/*" are pods and all their subresources.
func (c Calls) Has(verb, resource string) bool {
	for _, call := range c {
		if call.is(verb, resource) {
			return true
		}
	}
	return false
}

// Writes returns those that write.
func (c Calls) Writes() Calls {
	var writes Calls
	for _, call := range c {
		if call.Writes() {
			writes = append(writes, call)
		}
	}
	return writes
}

// String returns them, a line each.
func (c Calls) String() string {
	lines := make([]string, len(c))
	for i, call := range c {
		lines[i] = call.String()
	}
	return strings.Join(lines, "\n")
}

// Calls returns the calls that clients have made so far.
func (w *World) Calls() Calls { return w.callsFrom(0) }

func (w *World) callsFrom(first int) Calls {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.calls[first:]
	if len(since) == 0 {
		return nil
	}
	calls := make(Calls, len(since))
	for i, call := range since {
		calls[i] = *call
	}
	return calls
}

// WaitCall waits until a client has made a call of this verb and resource, named as
// for Calls.Has: for one that BlockOn holds, for one of another goroutine. It returns
// false when the context has ended before.
func (w *World) WaitCall(ctx context.Context, verb, resource string) bool {
	for {
		w.mu.Lock()
		next := w.calling.wait()
		w.mu.Unlock()
		if w.Calls().Has(verb, resource) {
			return true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

func join(resource, subresource string) string {
	if subresource == "" {
		return resource
	}
	return resource + "/" + subresource
}
