package rules

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

const (
	// patience is how long a plugin may take for something that it should do at once, on a
	// busy machine. glance is how long a check waits to see whether the plugin waits.
	patience = 3 * time.Second
	glance   = time.Second
	// apart is the shortest time between two polls. Calls within a shorter time belong to one poll
	// of several caches.
	apart = 2 * time.Millisecond
)

// cacheRules returns the rules for caches that have not synced, and for contexts.
func cacheRules() []check.Rule {
	return []check.Rule{
		{
			ID: "R1", Name: "waits-for-caches", Level: framework.Must,
			Title:  "While caches have not synced, the plugin waits, reads from the API server, or refuses. It does not decide from an empty cache.",
			Why:    "An API server serves requests before its informers have synced. A plugin that sets a ready function but never waits for it admits such requests, or sets wrong defaults. In one case, existing quotas were ignored after a restart.",
			Fix:    "Call WaitForReady, or poll HasSynced with the context of the request, before using a lister, and refuse if that fails.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/129998", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Handler.WaitForReady"},
			Check:  checkUnsynced,
		},
		{
			ID: "X1", Name: "calls-use-the-request-context", Level: framework.Should,
			Title:  "Calls that a plugin makes for a request use the context of the request, and end when it ends.",
			Why:    "A call with another context continues after the request has ended, has neither its deadline nor its trace, and can leak goroutines.",
			Fix:    "Pass the context of Admit or Validate to each call.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/78783", "https://github.com/kubernetes/kubernetes/issues/81602", "https://github.com/openshift/library-go/pull/1239"},
			Check:  checkContext,
		},
	}
}

// requireCaches ends the check as unsupported if no informers are injected, and the plugin made none.
func requireCaches(t *check.T, h *harness.Harness) {
	if makesInformers(h) {
		return
	}
	for _, injection := range h.Initializer().Log() {
		if !strings.HasPrefix(injection.Interface, "Wants") || strings.Contains(injection.Interface+injection.Method, "Informer") {
			return
		}
	}
	t.Unsupported("no informers are injected into the plugin and it makes none, so it reads no caches")
}

// makesInformers reports whether the plugin has made informers itself.
func makesInformers(h *harness.Harness) bool {
	return slices.ContainsFunc(h.World().Calls(), func(call fakes.Call) bool { return call.Informer })
}

// cold is a plugin in a World whose caches have not synced, with a request.
type cold struct {
	request framework.Request
	world   *fakes.World
	h       *harness.Harness
	// got is the response. answered is false if there was none.
	got      check.Response
	answered bool
	// waited is true if the plugin waited for the caches.
	waited bool
}

// coldPlugins returns one plugin for each request of the Subject.
func coldPlugins(t *check.T) []*cold {
	unsynced := fakes.Unsynced(cacheable(t.World())...)
	var all []*cold
	for _, request := range t.Requests() {
		w := t.World(unsynced)
		h, err := t.Build(w)
		if err != nil {
			t.Logf("build a plugin while caches have not synced: %v", err)
			return nil
		}
		all = append(all, &cold{request: request, world: w, h: h})
	}
	return all
}

// cacheable returns an object of each type for which the World can have a cache.
func cacheable(w *fakes.World) []runtime.Object {
	var objects []runtime.Object
	for _, scheme := range w.Schemes() {
		known := scheme.AllKnownTypes()
		for kind, typ := range known {
			if _, ok := known[kind.GroupVersion().WithKind(kind.Kind+"List")]; !ok {
				continue
			}
			if object, ok := reflect.New(typ).Interface().(runtime.Object); ok {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// atOnce runs f for all plugins at the same time, since f mostly waits.
func atOnce(all []*cold, f func(*cold)) {
	done := make(chan struct{})
	for _, one := range all {
		go func() {
			defer func() { done <- struct{}{} }()
			f(one)
		}()
	}
	for range all {
		<-done
	}
}

// polls returns a channel that is closed when the plugin has polled this many times from now on
// whether caches have synced, or when the context ends.
func polls(ctx context.Context, w *fakes.World, moments int) <-chan struct{} {
	enough := make(chan struct{})
	asked := w.HasSyncedCalls()
	go func() {
		defer close(enough)
		var last time.Time
		for seen := 0; seen < moments; {
			asked++
			if !w.WaitHasSynced(ctx, asked) {
				return
			}
			if now := time.Now(); now.Sub(last) >= apart {
				last = now
				seen++
			}
		}
	}()
	return enough
}

// untilReady sends the request, and marks the caches as synced when the plugin waits.
func (c *cold) untilReady(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	polled := polls(short, c.world, 2)
	done := check.SendAsync(ctx, c.h, c.request)
	select {
	case c.got = <-done:
		c.answered = true
		return
	case <-polled: // or glance is over: the plugin may wait without polling
		c.waited = true
	}
	c.world.MarkSynced()
	c.got, c.answered = check.Within(patience, done)
}

func checkUnsynced(t *check.T) {
	requireCaches(t, t.Plugin())
	all := coldPlugins(t)
	atOnce(all, func(c *cold) { c.untilReady(t.Context()) })
	for _, c := range all {
		judgeCold(t, c)
	}
}

// judgeCold compares the response with the response of a plugin whose caches have synced.
func judgeCold(t *check.T, c *cold) {
	expected := check.Send(t.Context(), t.Plugin(), c.request)
	switch {
	case expected.Err != nil:
		t.Logf("ignored %s: %v", c.request, expected.Err)
		return
	case !c.answered:
		t.Logf("%s: the plugin still waited %s after the caches had synced", c.request, patience)
		return
	case !c.waited && c.got.Err == nil && c.got.Result.Err != nil:
		if expected.Result.Err == nil {
			t.Reached() // the plugin refuses until it is ready
		}
		return
	}
	different := check.Difference(expected, c.got)
	if c.waited || c.world.HasSyncedCalls() > 0 || len(ofResources(c.got.Result.Calls)) > len(ofResources(expected.Result.Calls)) {
		t.Reached()
	}
	if different == "" {
		return
	}
	if t.Ever(func() bool {
		again := check.Send(t.Context(), t.Plugin(), c.request)
		return check.Difference(expected, again) != "" && (!check.SameVerdict(expected, again) || check.SameVerdict(expected, c.got))
	}) {
		t.Logf("ignored %s: its response varies from plugin to plugin", c.request)
		return
	}
	t.Reached()
	when := "while no cache had synced, without waiting"
	if c.waited {
		when = "after waiting for the caches to sync"
	}
	t.Errorf("%s %s: %s\nwant: the response with synced caches, or a refusal until then", c.request, when, different)
}
