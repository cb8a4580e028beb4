package rules

import (
	"runtime/debug"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// historyRules returns the rules for plugins that have been used, in a World that changes.
func historyRules() []check.Rule {
	return []check.Rule{
		{
			ID: "T3", Name: "used-plugin-answers-like-a-new-one", Level: framework.Must,
			Title:  "After objects of the cluster have changed, a plugin that has already handled requests responds like a new instance of the plugin.",
			Why:    "A plugin that caches its decisions uses an old one after a namespace, a class or a policy has changed, until the API server restarts. The API servers of one cluster can then respond differently.",
			Fix:    "Do not cache decisions, or remove them in an event handler when an object that they depend on changes.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/135757"},
			Check:  checkUsedPlugin,
		},
		{
			ID: "L2", Name: "event-handlers-accept-tombstones", Level: framework.Must,
			Title:  "Event handlers do not panic on a deletion that the informer has missed (cache.DeletedFinalStateUnknown) or on a resync.",
			Why:    "OnDelete gets such a value if an object was deleted while the watch was interrupted. A type assertion without a check then panics. Nothing recovers this panic, so the API server crashes.",
			Fix:    "Handle cache.DeletedFinalStateUnknown in OnDelete, and check the ok value of type assertions.",
			Source: []string{"https://pkg.go.dev/k8s.io/client-go/tools/cache#DeletedFinalStateUnknown", "https://pkg.go.dev/k8s.io/client-go/tools/cache#ResourceEventHandler"},
			Check:  checkTombstones,
		},
	}
}

func checkUsedPlugin(t *check.T) {
	w := t.World()
	initial := w.Objects()
	used := t.PluginIn(w)
	t.SendAll(used)
	changes := []struct {
		when  string
		apply func(*fakes.World)
	}{
		{"after all objects of the World were deleted", func(w *fakes.World) { w.Delete(w.Objects()...) }},
		{"after the objects of the World were deleted and created again", func(w *fakes.World) {
			w.Delete(w.Objects()...)
			w.Put(initial...)
		}},
	}
	for n, change := range changes {
		// The new plugin is in the same World, in which another plugin has already got the
		// requests.
		asNew := func() []check.Response {
			other := t.World()
			for _, earlier := range changes[:n] {
				earlier.apply(other)
				t.SendAll(t.PluginIn(other))
			}
			change.apply(other)
			return t.SendAll(t.PluginIn(other))
		}
		change.apply(w)
		expected := asNew()
		var got []check.Response
		check.Poll(t.Context(), patience, func() bool { // plugins may learn of changes in the background
			got = t.SendAll(used)
			return sameResponses(expected, got)
		})
		if t.CompareResponses("on a plugin that got requests before, "+change.when, expected, got, asNew) > 0 {
			t.Reached()
		}
		if t.Failed() {
			return // one reason is enough
		}
	}
}

func sameResponses(expected, got []check.Response) bool {
	for i := range expected {
		if check.Difference(expected[i], got[i]) != "" {
			return false
		}
	}
	return true
}

func checkTombstones(t *check.T) {
	h := t.Plugin()
	w := h.World()
	handlers := 0
	objects := w.Objects()
	for _, step := range []struct {
		what  string
		apply func()
	}{
		{"a resync", func() {
			check.Poll(t.Context(), patience, func() bool {
				// Plugins may add handlers in the background, but handlers of their own informers are not reached.
				adding := len(h.Goroutines()) > 0 && !makesInformers(h)
				handlers = w.Resync()
				return handlers > 0 || !adding
			})
		}},
		{"deletions that the informers have missed", func() { w.DeleteUnseen(objects...) }},
		{"additions after that", func() { w.Put(objects...) }},
	} {
		func() {
			defer func() {
				if thrown := recover(); thrown != nil {
					t.Errorf("an event handler of the plugin panicked on %s: %v\nwant: it checks the type of what it gets\n%s", step.what, thrown, handlerStack(thrown))
				}
			}()
			step.apply()
		}()
		if handlers == 0 {
			t.Unsupported("the plugin has no event handlers of injected informers")
		}
	}
	if len(objects) > 0 {
		t.Reached()
	}
}

// handlerStack returns the stack of a panic, without its end.
func handlerStack(thrown any) string {
	const limit = 2000
	stack := string(debug.Stack())
	if handler, ok := thrown.(*fakes.HandlerPanicError); ok {
		stack = handler.Stack
	}
	return stack[:min(limit, len(stack))]
}
