package rules

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// failureRules returns the rules for calls of the API server and the authorizer that fail or
// refuse.
func failureRules() []check.Rule {
	return []check.Rule{
		{
			ID: "F1", Name: "no-opinion-is-not-allow", Level: framework.Must,
			Title:  "If the authorizer has no opinion, the plugin responds as if the authorizer had denied.",
			Why:    "RBAC never denies: it has no opinion. A plugin that refuses only on DecisionDeny admits everything in such a cluster.",
			Fix:    "Admit only if the decision is authorizer.DecisionAllow.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/authorization/authorizer#Decision"},
			Check:  checkNoOpinion,
		},
		{
			ID: "F2", Name: "api-errors-fail-closed", Level: framework.Must,
			Title:  "If a read from the API server fails, the plugin refuses, or responds as without the error. An error does not mean \"not found\".",
			Why:    "While the API server is overloaded, reads fail. A plugin that treats an error as an empty result then admits what it should refuse, or sets wrong defaults.",
			Fix:    "Refuse on each error that is not apierrors.IsNotFound: return apierrors.NewInternalError.",
			Source: []string{"https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/", "https://pkg.go.dev/k8s.io/apimachinery/pkg/api/errors#IsNotFound"},
			Check:  checkAPIErrors,
		},
		{
			ID: "F3", Name: "authorizer-errors-fail-closed", Level: framework.Must,
			Title:  "If the authorizer returns an error, the plugin does not admit a request that it refuses when the authorizer denies.",
			Why:    "If an authorization webhook cannot be reached, the authorizer returns an error. A plugin that then admits requests gives every user all rights until the webhook can be reached again.",
			Fix:    "Check the error that Authorize returns before the decision, and refuse if there is an error.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/authorization/authorizer#Authorizer"},
			Check:  checkAuthorizerErrors,
		},
		{
			ID: "F4", Name: "failures-are-not-forbidden", Level: framework.Should,
			Title:  "If a read from the API server fails with 500, the plugin does not refuse with 403 or with another code that means that the client must not try again.",
			Why:    "A client does not retry a request that is forbidden, and its user searches for a missing right. A controller marks the object as failed because the API server was overloaded for a moment.",
			Fix:    "Return the error of the client itself, or apierrors.NewInternalError. Use admission.NewForbidden only if the plugin has decided to refuse.",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/55373", "https://github.com/kubernetes/kubernetes/pull/69801"},
			Check:  checkFailuresAreRetried,
		},
		{
			ID: "F5", Name: "mapper-errors-fail-closed", Level: framework.Must,
			Title:  "If the RESTMapper returns an error, the plugin refuses, or responds as without the error.",
			Why:    "The RESTMapper gets its mappings from discovery, which fails while an aggregated API server is not available. An error other than NoMatch does not mean that a kind is unknown or that nothing has to be checked.",
			Fix:    "Refuse on each error that is not meta.IsNoMatchError: return apierrors.NewInternalError.",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/98147", "https://github.com/kubernetes/kubernetes/pull/62659"},
			Check:  checkMapperErrors,
		},
		{
			ID: "R3", Name: "cache-misses-are-read-live", Level: framework.Should,
			Title:  "If a cache has synced but is outdated, the plugin does not refuse a request because the cache lacks an object that the API server has. If it reads the object from the API server, the result is the same as with the cache.",
			Why:    "A client creates an object, and immediately afterwards another one that refers to it. Caches receive the first object some time later.",
			Fix:    "If a lister returns NotFound, get the object from the API server before deciding.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/135359", "https://github.com/kubernetes/kubernetes/issues/91315"},
			Check:  checkCacheMisses,
		},
	}
}

// deny returns an authorizer that denies everything.
func deny() authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionDeny, "denied by the contract suite", nil
	})
}

func checkNoOpinion(t *check.T) {
	compareWithDenied(t, "has no opinion", func() authorizer.Authorizer { return fakes.Deny() })
}

func checkAuthorizerErrors(t *check.T) {
	compareWithDenied(t, "returns an error", func() authorizer.Authorizer {
		return fakes.Deny().FailWith(errors.New("the authorizer of the contract suite fails"))
	})
}

// compareWithDenied reports requests that the plugin admits with the given authorizer, and refuses
// with an authorizer that denies.
func compareWithDenied(t *check.T, does string, with func() authorizer.Authorizer) {
	if !slices.ContainsFunc(injected(t), isAuthorizer) {
		t.Unsupported("no authorizer is injected into the plugin")
	}
	send := func(request framework.Request, authorizer authorizer.Authorizer) check.Response {
		w := t.World()
		h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectAuthorizer(authorizer)))
		if err != nil {
			t.Fatalf("%v", err)
		}
		return check.Send(t.Context(), h, request)
	}
	for _, request := range t.Requests() {
		allowed, denied := send(request, fakes.Allow()), send(request, deny())
		if allowed.Err != nil || denied.Err != nil || allowed.Result.Err != nil || denied.Result.Err == nil {
			continue // the decision does not matter
		}
		t.Reached()
		if got := send(request, with()); got.Err == nil && got.Result.Err == nil {
			t.Errorf("%s: the plugin admits it if the authorizer %s, and if it denies, the answer is: %s\nwant: only DecisionAllow without an error is allowed", request, does, denied)
		}
	}
}

// settings are the options of Worlds in which a plugin may make different calls: with complete
// caches and with empty caches.
func settings() [][]fakes.Option { return [][]fakes.Option{{}, {fakes.StaleCache()}} }

// failedRead is a read from the API server that failed while a plugin handled a request.
type failedRead struct {
	request framework.Request
	call    fakes.Call
	// expected is the response without the failure, and got the response with it. Neither is a panic.
	expected, got check.Response
	// again sends the request without the failure.
	again func() check.Response
}

// eachFailedRead calls f for each request and each kind of read that the plugin makes for it.
func eachFailedRead(t *check.T, f func(failedRead)) {
	requireClients(t)
	failure := apierrors.NewInternalError(errors.New("the API server of the contract suite fails"))
	late := t.HalfBudget()
	for _, options := range settings() {
		for _, request := range t.Requests() {
			send := func() check.Response { return check.Send(t.Context(), t.PluginIn(t.World(options...)), request) }
			expected := send()
			if expected.Err != nil {
				continue
			}
			for _, call := range distinctReads(expected.Result.Calls) {
				if late() {
					t.LogOnce("stopped before the last request: half of the budget is used")
					return
				}
				h := t.PluginIn(t.World(append(slices.Clone(options), unserved(t, call)...)...))
				h.World().FailOn(call.Verb, resourceOf(call), failure)
				if got := check.Send(t.Context(), h, request); got.Err == nil {
					f(failedRead{request, call, expected, got, send})
				}
			}
		}
	}
}

// unserved returns the option that adds the resource of a call to a World that does not have it.
// FailOn needs it.
func unserved(t *check.T, call fakes.Call) []fakes.Option {
	if _, err := t.World().RESTMapper().KindFor(call.Resource); err == nil {
		return nil
	}
	return []fakes.Option{fakes.WithMappings(meta.RESTMapping{
		Resource: call.Resource, GroupVersionKind: call.Resource.GroupVersion().WithKind("Unserved"), Scope: meta.RESTScopeNamespace,
	})}
}

func checkAPIErrors(t *check.T) {
	reported := map[string]bool{}
	eachFailedRead(t, func(failed failedRead) {
		if failed.got.Result.Err != nil {
			t.Reached()
			return
		}
		difference, read := check.Difference(failed.expected, failed.got), failed.call.Verb+resourceOf(failed.call)
		if difference == "" || reported[read] {
			return
		}
		if t.Ever(func() bool { return check.Difference(failed.expected, failed.again()) != "" }) {
			t.LogOnce("ignored " + failed.request.String() + ": its response varies")
			return
		}
		reported[read] = true
		t.Errorf("%s: the call %q failed with 500, and the plugin admitted the request: %s\nwant: a refusal with 500 or 503", failed.request, failed.call, difference)
	})
}

func checkFailuresAreRetried(t *check.T) {
	reported := map[string]bool{}
	eachFailedRead(t, func(failed failedRead) {
		if failed.expected.Result.Err != nil || failed.got.Result.Err == nil {
			return // the failure is not the reason for the response
		}
		read := failed.call.Verb + resourceOf(failed.call)
		if !isFinal(failed.got.Result.Status) {
			t.Reached()
			return
		}
		if reported[read] || t.Ever(func() bool { again := failed.again(); return again.Err != nil || again.Result.Err != nil }) {
			return
		}
		reported[read] = true
		t.Errorf("%s: the call %q failed with 500, and the plugin %s\nwant: a refusal with 500 or 503", failed.request, failed.call, failed.got)
	})
}

var errMapper = errors.New("the RESTMapper of the contract suite fails")

func checkMapperErrors(t *check.T) {
	if !slices.Contains(injected(t), "WantsRESTMapper") {
		t.Unsupported("no RESTMapper is injected into the plugin")
	}
	for _, request := range t.Requests() {
		var called atomic.Bool
		w := t.World()
		mapper := meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) {
			called.Store(true)
			return nil, errMapper
		})
		h, err := t.BuildWith(w, t.Initializer(w, fakes.Inject("WantsRESTMapper", func(p initializer.WantsRESTMapper) { p.SetRESTMapper(mapper) })))
		if err != nil {
			t.Fatalf("%v", err)
		}
		expected, got := check.Send(t.Context(), t.Plugin(), request), check.Send(t.Context(), h, request)
		if !called.Load() || expected.Err != nil || got.Err != nil {
			continue
		}
		t.Reached()
		if difference := check.Difference(expected, got); got.Result.Err == nil && difference != "" && !t.Varies(request, expected) {
			t.Errorf("%s: the RESTMapper failed, and the plugin admitted the request: %s\nwant: a refusal with 500 or 503", request, difference)
		}
	}
}

// distinctReads returns the reads, one of each verb and resource.
func distinctReads(calls fakes.Calls) fakes.Calls {
	var reads fakes.Calls
	for _, call := range ofResources(calls) {
		if (call.Verb == "get" || call.Verb == "list") && !reads.Has(call.Verb, resourceOf(call)) {
			reads = append(reads, call)
		}
	}
	return reads
}

// resourceOf returns the resource of a call in the notation of World.FailOn.
func resourceOf(call fakes.Call) string {
	resource := call.Resource.Resource + "." + call.Resource.Group
	if call.Subresource != "" {
		resource += "/" + call.Subresource
	}
	return resource
}

func checkCacheMisses(t *check.T) {
	requireCaches(t, t.Plugin())
	for _, request := range t.Subject.Allow {
		expected := check.Send(t.Context(), t.Plugin(), request)
		got := check.Send(t.Context(), t.PluginIn(t.World(fakes.StaleCache())), request)
		if expected.Err != nil || expected.Result.Err != nil || got.Err != nil {
			continue
		}
		if len(ofResources(got.Result.Calls)) > len(ofResources(expected.Result.Calls)) || got.Result.Err != nil {
			t.Reached() // the caches matter
		}
		if got.Result.Err != nil {
			t.Errorf("%s: with outdated caches, got %s, want admitted\nwant: the plugin reads an object from the API server if its cache does not have it", request, got)
			continue
		}
		compareLiveReads(t, request, expected, got.Result.Calls)
	}
}

// compareLiveReads sends a request to a plugin whose caches lack only what the plugin then reads from the API
// server. The plugin must use what it reads.
func compareLiveReads(t *check.T, request framework.Request, expected check.Response, calls fakes.Calls) {
	reads := distinctReads(calls)
	if len(reads) == 0 {
		return
	}
	w := t.World(fakes.StaleCache())
	w.PutCache(slices.DeleteFunc(w.Objects(), func(object runtime.Object) bool {
		return slices.ContainsFunc(reads, func(call fakes.Call) bool { return isOf(w, object, call.Resource) })
	})...)
	got := check.Send(t.Context(), t.PluginIn(w), request)
	difference := check.Difference(expected, got)
	if got.Err != nil || difference == "" || t.Varies(request, expected) {
		return
	}
	if check.SameVerdict(expected, got) && len(distinctReads(got.Result.Calls)) == 0 {
		t.Unobserved("%s: with an outdated cache the plugin reads nothing from the API server, and the object is another one: %s", request, difference)
		return
	}
	t.Errorf("%s: with an outdated cache the plugin makes the calls\n%s\nbut the response is another: %s\nwant: it uses the object that it reads", request, reads, difference)
}

// isOf reports whether an object of a World is of a resource.
func isOf(w *fakes.World, object runtime.Object, resource schema.GroupVersionResource) bool {
	kinds := []schema.GroupVersionKind{object.GetObjectKind().GroupVersionKind()}
	for _, scheme := range w.Schemes() {
		known, _, _ := scheme.ObjectKinds(object) // an error means that another scheme has the type
		kinds = append(kinds, known...)
	}
	return slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		mapping, err := w.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil && mapping.Resource == resource
	})
}
