package rules

import (
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// memoryRules returns the rules for objects that other code uses too: what a plugin must not
// change, and memory that objects must not share.
func memoryRules() []check.Rule {
	return []check.Rule{
		{
			ID: "O1", Name: "old-object-is-unchanged", Level: framework.Must,
			Title:  "Admit does not change the old object.",
			Why:    "Later plugins and webhooks compare the object with the old object. If the old object was changed, a change by the user seems to be missing, or seems to exist although the user made none.",
			Fix:    "Work on a DeepCopy of the old object.",
			Source: []string{"https://github.com/volcano-sh/volcano/issues/5740"},
			Check:  checkOldUnchanged,
		},
		{
			ID: "O2", Name: "old-object-is-not-shared", Level: framework.Should,
			Title:  "Admit copies what it takes from the old object: the object and the old object share no memory.",
			Why:    "A later plugin that edits the object then also edits the old object, unintentionally. One of Kubernetes' own plugins does this: an updated pod has the same pointer to its priority as the old pod.",
			Fix:    "Copy pointers, slices and maps of the old object before setting them in the object: DeepCopy, slices.Clone, maps.Clone.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/priority/admission.go"},
			Check:  checkOldNotAliased,
		},
		{
			ID: "C1", Name: "caches-are-unchanged", Level: framework.Must,
			Title:  "The plugin does not change objects in caches.",
			Why:    "The whole process shares the objects that a lister returns. All readers see the change until the next event from the API server, and concurrent writes are a data race.",
			Fix:    "DeepCopy what a lister returns before changing it.",
			Source: []string{"https://github.com/kubernetes/kubernetes/pull/27784", "https://github.com/kubesphere/kubesphere/issues/4599", "https://github.com/operator-framework/operator-lifecycle-manager/issues/2562"},
			Check:  checkCacheUnchanged,
		},
		{
			ID: "C2", Name: "cached-objects-are-not-shared", Level: framework.Should,
			Title:  "Admit copies what it takes from a cached object: the object shares no memory with a cache.",
			Why:    "The next plugin that edits the object then writes to the cache, and the defect is looked for in the wrong plugin.",
			Fix:    "DeepCopy what a lister returns before setting it in the object.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/runtimeclass/admission.go", "https://github.com/kubernetes/kubernetes/pull/27784"},
			Check:  checkCacheNotAliased,
		},
		{
			ID: "C3", Name: "objects-share-no-memory", Level: framework.Should,
			Title:  "The object shares no memory with the plugin or with the object of another request.",
			Why:    "An edit of one object changes the object of another request: through a shared pointer, or through the spare capacity of a shared slice to which both append.",
			Fix:    "Give each object its own copy of what the plugin holds: DeepCopy, or slices.Clone before append.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/plugin/pkg/admission/defaulttolerationseconds/admission.go", "https://go.dev/blog/slices-intro"},
			Check:  checkStateNotAliased,
		},
		{
			ID: "U1", Name: "attributes-are-not-retained", Level: framework.Should,
			Title:  "The plugin keeps no reference to its attributes after a call.",
			Why:    "The API server edits the object after the call. A plugin that reads it later gets other content, and reads and writes are a data race.",
			Fix:    "Copy the values that the plugin needs later, and keep neither the attributes nor their objects.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  checkNotRetained,
		},
		{
			ID: "U2", Name: "user-is-unchanged", Level: framework.Should,
			Title:  "The plugin does not change the user: its name, groups or extra.",
			Why:    "Authorization, the audit log and all later plugins use the same user. With an additional group, the user can have more rights.",
			Fix:    "Create a user.DefaultInfo with copies of the groups and extra, and change the copy.",
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
			t.Errorf("%s: after Admit the object shares memory with the old object: overwriting the object changed the old object (- was, + is):\n%s\nwant: Admit copies what it takes from the old object",
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
				t.Errorf("%s: %s changed an object in a cache: %s\nwant: it changes a DeepCopy", invocation.Request, check.MethodOf(phase), edit)
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
			return false // caches-are-unchanged (C1) reports changes of a cache
		}
		defer check.Overwrite(check.SpareNone, result.Object).Restore()
		for _, edit := range snapshot.Mutations() {
			t.Errorf("%s: after Admit the object shares memory with a cache: overwriting the object changed the cached one: %s\nwant: Admit copies what it takes from a cached object", invocation.Request, edit)
		}
		return true
	})
}

// readsCaches calls f for each request, with a new plugin. F reports whether the plugin has
// read a cache.
func readsCaches(t *check.T, f func(check.Invocation, *fakes.Snapshot) bool) {
	read, informed := false, false
	for _, request := range t.Requests() {
		h := t.Plugin()
		for _, injection := range h.Initializer().Log() {
			informed = informed || strings.Contains(injection.Interface+injection.Method, "Informer")
		}
		snapshot := h.World().Snapshot()
		given, ok := t.AttributesFor(h, request, framework.Mutating)
		if ok && f(check.Invocation{T: t, Harness: h, Request: request, Attributes: given}, snapshot) {
			read = true
			t.Reached()
		}
	}
	if !read && !informed {
		t.Unsupported("no informers are injected into the plugin")
	}
}
