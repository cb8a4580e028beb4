package fakes

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
)

// Call is one API call that a client of a World made.
type Call struct {
	// Verb is the verb of an API request: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Path is the path of a URL without a resource, such as "/version". Empty for a call about a
	// resource.
	Path string
	// Resource and Subresource are parts of the URL. Subresource can be empty.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are parts of the URL. Each can be empty. For a call about a Namespace
	// object, only Name is set.
	Namespace, Name string
	// Object is the body of a create or update. Nil for other verbs.
	Object runtime.Object
	// Patch is the body of a patch.
	Patch []byte
	// DryRun is true for dryRun=All.
	DryRun bool
	// Err is the error that the client got. Nil after success, and while the call runs.
	Err error
	// Context is the context of the HTTP request, which is that of the caller, with its values.
	Context context.Context //nolint:containedctx // tests compare it
}

// Writes reports whether the call changes stored objects if it succeeds. Dry runs, reviews such as
// SubjectAccessReview, and requests for tokens change nothing.
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
func (c Call) String() string { return apiserver.Call(c).String() }

// is reports whether the call has this verb and resource, in the notation of FailOn and Has.
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

// Calls is a list of calls, in the order in which they began.
type Calls []Call

// Has reports whether there is a call with this verb and resource. Write a resource as "pods",
// "deployments.apps" or "pods/status". "*" matches every verb or resource. "pods/*" matches pods
// and all their subresources.
func (c Calls) Has(verb, resource string) bool {
	for _, call := range c {
		if call.is(verb, resource) {
			return true
		}
	}
	return false
}

// Writes returns the calls for which Call.Writes is true.
func (c Calls) Writes() Calls {
	var writes Calls
	for _, call := range c {
		if call.Writes() {
			writes = append(writes, call)
		}
	}
	return writes
}

// String returns one line for each call.
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
	w.store.Lock()
	defer w.store.Unlock()
	since := w.calls[first:]
	if len(since) == 0 {
		return nil
	}
	calls := make(Calls, len(since))
	for i, call := range since {
		calls[i] = Call(*call)
	}
	return calls
}

// WaitCall waits until a client has begun a call with this verb and resource, written as for
// Calls.Has. Use it for a call that BlockOn blocks, or that another goroutine makes. It returns
// false if the context ends first.
func (w *World) WaitCall(ctx context.Context, verb, resource string) bool {
	for {
		w.store.Lock()
		next := w.calling.Wait()
		w.store.Unlock()
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

// transport is the transport of a client, which calls the API server of a World.
type transport struct {
	w *World
	// test is true for a client of the test itself.
	test bool
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := t.w.server.Parse(r)
	if err != nil {
		return nil, err
	}
	if t.test {
		defer t.w.waitForHandlers()
		return request.Respond(r.Context().Err())
	}
	return request.Respond(t.w.suffer(r.Context(), t.w.record(request.Call)))
}

// record records a call that begins, and returns a copy.
func (w *World) record(call *apiserver.Call) Call {
	w.store.Lock()
	defer w.store.Unlock()
	w.calls = append(w.calls, call)
	w.calling.Raise()
	return Call(*call)
}
