package rules

import (
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// aliasProperties returns the properties of this file and those around it.
func memoryRules() []check.Rule {
	return []check.Rule{
		{
			ID: "O1", Name: "old-object-is-unchanged", Level: framework.Must,
			Title:  "Admit does not change the old object.",
			Why:    "the old object is what every plugin after this one, and every webhook, compares with: a change to it hides a change of the user's, or makes one up",
			Source: []string{"https://github.com/volcano-sh/volcano/issues/5740"},
			Check:  checkOldUnchanged,
		},
		{
			ID: "O2", Name: "old-object-is-not-shared", Level: framework.Should,
			Title:  "What Admit takes over from the old object it copies: the two share no memory.",
			Why:    "whoever edits the new object next edits the old one with it, without knowing; a plugin of Kubernetes has handed on the old pod's pointer to its priority",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/priority/admission.go"},
			Check:  checkOldNotAliased,
		},
		{
			ID: "C1", Name: "caches-are-unchanged", Level: framework.Must,
			Title:  "The plugin does not change objects in caches.",
			Why:    "what a lister returns belongs to everybody in the process: the change is seen by all until the next one from the server, and written by goroutines at once it is a race",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/27784", "https://github.com/kubesphere/kubesphere/issues/4599", "https://github.com/operator-framework/operator-lifecycle-manager/issues/2562"},
			Check:  checkCacheUnchanged,
		},
		{
			ID: "C2", Name: "cached-objects-are-not-shared", Level: framework.Should,
			Title:  "What Admit takes over from a cached object it copies: the object it leaves shares no memory with a cache.",
			Why:    "the next plugin or webhook that edits the object writes into the cache, and is blamed for it",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/runtimeclass/admission.go", "https://github.com/kubernetes/kubernetes/pull/27784"},
			Check:  checkCacheNotAliased,
		},
		{
			ID: "C3", Name: "objects-share-no-memory", Level: framework.Should,
			Title:  "The object that Admit leaves shares no memory with the plugin, nor with the object of another request.",
			Why:    "one request's edit shows up in another's object: a shared pointer, or the spare room of a shared slice that each append writes into",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/defaulttolerationseconds/admission.go", "https://go.dev/blog/slices-intro"},
			Check:  checkStateNotAliased,
		},
		{
			ID: "U1", Name: "attributes-are-not-retained", Level: framework.Should,
			Title:  "After a call the plugin has forgotten its attributes: what becomes of them does not matter to it.",
			Why:    "the API server goes on editing the object when the call has returned, so that whoever kept it reads something else later, in a race",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkNotRetained,
		},
		{
			ID: "U2", Name: "user-is-unchanged", Level: framework.Should,
			Title:  "The plugin does not change the user: neither name, nor groups, nor extra.",
			Why:    "the same user is asked about by authorization, the audit log and all plugins that follow; added to, it is another one",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/authentication/user#Info"},
			Check:  checkUserUnchanged,
		},
	}
}

func checkOldUnchanged(t *check.T) {
	t.EachInvocation(t.Requests(), framework.Mutating, func(invocation check.Invocation) {
		if objects.IsNil(invocation.Attributes.OldObject) {
			return
		}
		old := check.Copy(invocation.Attributes.OldObject)
		if _, thrown := t.Call(invocation.Harness, invocation.Attributes.Record(), framework.Mutating); thrown != nil {
			return
		}
		t.Reached()
		if !check.Equal(old, invocation.Attributes.OldObject) {
			t.Errorf("%s: Admit changed the old object (- was, + is):\n%s", invocation.Request, check.Diff(old, invocation.Attributes.OldObject))
		}
	})
}

func checkOldNotAliased(t *check.T) {
	t.EachMutation(func(invocation check.Invocation, result harness.Result) {
		if objects.IsNil(invocation.Attributes.OldObject) {
			return
		}
		t.Reached()
		old := check.Copy(invocation.Attributes.OldObject)
		defer check.Overwrite(check.SpareNone, result.Object).Restore()
		if !check.Equal(old, invocation.Attributes.OldObject) {
			t.Errorf("%s: after Admit the object shares memory with the old object: the new object, written over, changed the old one with it (- was, + is):\n%s\nexpected Admit to copy what it takes over",
				invocation.Request, check.Diff(old, invocation.Attributes.OldObject))
		}
	})
}

func checkCacheUnchanged(t *check.T) {
	readsCaches(t, func(invocation check.Invocation, snapshot *fakes.Snapshot) bool {
		for _, phase := range check.Phases() {
			given, ok := t.AttributesFor(invocation.Harness, invocation.Request, phase)
			if !ok || !check.WouldCall(invocation.Harness.Plugin(), phase, given.Operation) {
				continue
			}
			result, thrown := t.Call(invocation.Harness, given.Record(), phase)
			if thrown != nil {
				continue
			}
			for _, edit := range result.CacheEdits {
				t.Errorf("%s: %s changed an object in a cache, which belongs to all who read it: %s\nexpected it to change a DeepCopy", invocation.Request, check.MethodOf(phase), edit)
			}
			if result.Err != nil {
				break
			}
		}
		return snapshot.Read()
	})
}

func checkCacheNotAliased(t *check.T) {
	t.RequirePhase(framework.Mutating)
	readsCaches(t, func(invocation check.Invocation, snapshot *fakes.Snapshot) bool {
		if !check.WouldCall(invocation.Harness.Plugin(), framework.Mutating, invocation.Attributes.Operation) {
			return false
		}
		result, ok := invocation.Admit()
		if !ok || len(result.CacheEdits) > 0 || check.Equal(result.Before, result.Object) || !snapshot.Read() {
			return false // changes to a cache are C1's
		}
		defer check.Overwrite(check.SpareNone, result.Object).Restore()
		for _, edit := range snapshot.Mutations() {
			t.Errorf("%s: after Admit the object shares memory with a cache: the object, written over, changed the cached one with it: %s\nexpected Admit to copy what it takes over", invocation.Request, edit)
		}
		return true
	})
}

// readsCaches calls look for every request, with a plugin of its own; look reports
// whether it has read a cache.
func readsCaches(t *check.T, look func(check.Invocation, *fakes.Snapshot) bool) {
	read, informed := false, false
	for _, request := range t.Requests() {
		h := t.Plugin()
		for _, injection := range h.Initializer().Log() {
			informed = informed || strings.Contains(injection.Interface+injection.Method, "Informer")
		}
		snapshot := h.World().Snapshot()
		given, ok := t.AttributesFor(h, request, framework.Mutating)
		if ok && look(check.Invocation{T: t, Harness: h, Request: request, Attributes: given}, snapshot) {
			read = true
			t.Reached()
		}
	}
	if !read && !informed {
		t.Unsupported("the plugin is given no informers")
	}
}
