package rules

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
			ID: "R3", Name: "cache-misses-are-read-live", Level: framework.Should,
			Title:  "If a cache has synced but is outdated, the plugin does not refuse a request because the cache lacks an object that the API server has.",
			Why:    "A client creates an object, and immediately afterwards another one that refers to it. Caches receive the first object some time later.",
			Fix:    "If a lister returns NotFound, get the object from the API server before deciding.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/135359", "https://github.com/kubernetes/kubernetes/issues/91315"},
			Check:  checkCacheMisses,
		},
		{
			ID: "R4", Name: "cache-misses-do-not-admit", Level: framework.May,
			Title:  "If a cache has synced but is outdated, the plugin does not admit a request that it would refuse with the current objects of the API server.",
			Why:    "A client creates an object that forbids something, such as a quota or a label of a namespace, and immediately afterwards sends a request that the object forbids. A plugin that admits if its cache has no such object admits the request. Plugins that read their own configuration from a cache break this rule by design.",
			Fix:    "If a lister returns NotFound or an empty list, read from the API server before admitting. Cache the result for a short time if there are many such requests.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/91315", "https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/limitranger/admission.go"},
			Check:  checkCacheMissesRefused,
		},
	}
}

func checkCacheMissesRefused(t *check.T) {
	requireCaches(t, t.Plugin())
	for _, request := range t.Subject.Refused() {
		expected := check.Send(t.Context(), t.Plugin(), request)
		got := check.Send(t.Context(), t.PluginIn(t.World(fakes.StaleCache())), request)
		if expected.Err != nil || expected.Result.Err == nil || got.Err != nil {
			continue
		}
		if got.Result.Err == nil {
			t.Errorf("%s: with outdated caches, got admitted, want %s", request, expected)
		}
		if got.Result.Err == nil || len(ofResources(got.Result.Calls)) > len(ofResources(expected.Result.Calls)) {
			t.Reached() // the caches matter
		}
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
	if !slices.ContainsFunc(injected(t), func(name string) bool { return name == "WantsAuthorizer" || name == "WantsUnconditionalAuthorizer" }) {
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

func checkAPIErrors(t *check.T) {
	requireClients(t)
	failure := apierrors.NewInternalError(errors.New("the API server of the contract suite fails"))
	late, reported := t.HalfBudget(), map[string]bool{}
	for _, options := range settings() {
		for _, request := range t.Requests() {
			expected := check.Send(t.Context(), t.PluginIn(t.World(options...)), request)
			if expected.Err != nil {
				continue
			}
			for _, call := range distinctReads(expected.Result.Calls) {
				if late() {
					t.LogOnce("stopped before the last request: half of the budget is used")
					return
				}
				send := func() check.Response {
					h := t.PluginIn(t.World(append(slices.Clone(options), unserved(t, call)...)...))
					h.World().FailOn(call.Verb, resourceOf(call), failure)
					return check.Send(t.Context(), h, request)
				}
				got := send()
				if got.Err == nil && got.Result.Err != nil {
					t.Reached()
				}
				difference := check.Difference(expected, got)
				if got.Err != nil || got.Result.Err != nil || difference == "" || reported[call.Verb+resourceOf(call)] {
					continue
				}
				if t.Ever(func() bool {
					return check.Difference(expected, check.Send(t.Context(), t.PluginIn(t.World(options...)), request)) != ""
				}) {
					t.LogOnce("ignored " + request.String() + ": its response varies")
					continue
				}
				reported[call.Verb+resourceOf(call)] = true
				t.Reached()
				t.Errorf("%s: the call %q failed with 500, and the plugin admitted the request: %s\nwant: a refusal with 500 or 503", request, call, difference)
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
		}
	}
}
