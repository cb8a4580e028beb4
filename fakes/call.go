package fakes

import (
	"context"
	"net/http"
	"strings"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
)

// Call is one API call that a client of a World made. The methods are Writes, which reports whether the call changes
// stored objects if it succeeds, and String. The fields are:
//
//	Verb                   of an API request: get, list, watch, create, update, patch, delete, deletecollection
//	Path                   of a URL without a resource, such as "/version"; empty for a call about a resource
//	Resource, Subresource  parts of the URL; Subresource can be empty
//	Namespace, Name        parts of the URL; each can be empty; for a Namespace object, only Name is set
//	Object                 the body of a create or update; nil for other verbs
//	Patch                  the body of a patch
//	DryRun                 true for dryRun=All
//	Informer               true for a list or watch by which an informer that a plugin made fills its cache
//	Err                    the error that the client got; nil after success, and while the call runs
//	Context                the context of the HTTP request, which is that of the caller, with its values
type Call = apiserver.Call

// is reports whether a call has this verb and resource, in the notation of Has.
func is(c Call, verb, resource string) bool {
	if verb != "*" && verb != c.Verb {
		return false
	}
	if c.Path != "" {
		return resource == "*" || resource == c.Path
	}
	return covers(resource, c.Resource.GroupResource(), c.Subresource)
}

// Calls is a list of calls, in the order in which they began.
type Calls []Call

// Has reports whether there is a call with this verb and resource. Write a resource as "pods",
// "deployments.apps" or "pods/status". "*" matches every verb or resource. "pods/*" matches pods
// and all their subresources. For a call without a resource, give the path: "/version". Use the
// verbs of the API: "create", not "post". Has is false for a verb or resource that does not exist;
// FailOn, BlockOn and WaitCall report it.
func (c Calls) Has(verb, resource string) bool {
	for _, call := range c {
		if is(call, verb, resource) {
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
		calls[i] = *call
	}
	return calls
}

// WaitCall waits until a client has begun a call with this verb and resource, written as for
// Calls.Has. Use it for a call that BlockOn blocks, or that another goroutine makes. It returns
// false if the context ends first. A verb or resource that does not exist ends the test.
func (w *World) WaitCall(ctx context.Context, verb, resource string) bool {
	w.t.Helper()
	if err := w.checkNotation(verb, resource); err != nil {
		w.t.Fatalf("WaitCall: %v", err)
		return false
	}
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
	if verb := request.Call.Verb; (verb == "list" || verb == "watch") && apiserver.ByInformer() {
		request.Call.Informer = true
		if t.w.cached != nil {
			request.ReadFrom(t.w.cached)
		}
		if err := t.w.informers.WaitSynced(r.Context(), request.Call.Resource); err != nil {
			return nil, err
		}
	}
	return request.Respond(t.w.suffer(r.Context(), t.w.record(request.Call)))
}

// record records a call that begins, and returns a copy.
func (w *World) record(call *apiserver.Call) Call {
	w.store.Lock()
	defer w.store.Unlock()
	w.calls = append(w.calls, call)
	w.calling.Raise()
	return *call
}
