package rules

import (
	"context"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

const (
	// patience is how long a plugin may take for what it is to do at once, on a machine
	// that does much else; glance how long it is watched for whether it waits.
	patience = 3 * time.Second
	glance   = time.Second
	// apart is how far apart questions are that are not of one look at several caches.
	apart = 2 * time.Millisecond
)

// readyProperties returns the properties of caches that have not synced and of contexts.
func cacheRules() []check.Rule {
	return []check.Rule{
		{
			ID: "R1", Name: "waits-for-caches", Level: framework.Must,
			Title:  "While caches have not synced, a plugin waits, asks the API server or refuses; it does not decide by an empty cache.",
			Why:    "An API server serves requests before its informers have synced. Plugins that only register a ready function and never wait for it let such requests pass, or give them other defaults: quotas that existed were not seen at a cold start.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/129998", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Handler.WaitForReady"},
			Check:  checkUnsynced,
		},
		{
			ID: "R2", Name: "waiting-ends-with-the-request", Level: framework.Should,
			Title:  "Waiting for caches ends with the request.",
			Why:    "A wait without the request's context goes on for its full ten seconds after the client has gone, and keeps the goroutine and its place in the API server's queue.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Handler.WaitForReady", "https://github.com/kubernetes/kubernetes/issues/108388"},
			Check:  checkWaitEnds,
		},
		{
			ID: "X1", Name: "calls-use-the-request-context", Level: framework.Should,
			Title:  "Calls that a plugin makes for a request carry the request's context, and end with it.",
			Why:    "Calls with a context of their own outlive the request, lose its deadline and its trace, and leak goroutines once something around the plugin gives up.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/78783", "https://github.com/kubernetes/kubernetes/issues/81602", "https://github.com/openshift/library-go/pull/1239"},
			Check:  checkContext,
		},
	}
}

// needCaches ends the trial for plugins that are given no informers.
func requireCaches(t *check.T, h *harness.Harness) {
	for _, injection := range h.Initializer().Log() {
		if !strings.HasPrefix(injection.Interface, "Wants") || strings.Contains(injection.Interface+injection.Method, "Informer") {
			return
		}
	}
	t.Unsupported("the plugin is given no informers, so that it reads no caches")
}

// cold is a plugin in a World whose caches have not synced, and a request for it.
type cold struct {
	request framework.Request
	world   *fakes.World
	h       *harness.Harness
	// got is the answer, unless none came.
	got      check.Response
	answered bool
	// waited is true where the plugin waited until the caches had synced.
	waited bool
	// late is true where the plugin went on waiting after the request was canceled.
	late bool
}

// coldPlugins returns one for each request of the Subject.
func coldPlugins(t *check.T) []*cold {
	unsynced := fakes.Unsynced(cacheable(t.World())...)
	var all []*cold
	for _, request := range t.Requests() {
		w := t.World(unsynced)
		h, err := t.Build(w)
		if err != nil {
			t.Logf("no plugin can be built while caches have not synced: %v", err)
			return nil
		}
		all = append(all, &cold{request: request, world: w, h: h})
	}
	return all
}

// cacheable returns an object of each type that a cache of the World can be of.
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

// atOnce runs f for all at once: most of the time is spent waiting.
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

// polls is closed once somebody asks whether caches have synced at so many moments,
// from now on, or when the context ends.
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

// untilReady carries out the request, and has the caches sync once the plugin waits.
func (c *cold) untilReady(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	polled := polls(short, c.world, 2)
	done := check.SendAsync(ctx, c.h, c.request)
	select {
	case c.got = <-done:
		c.answered = true
		return
	case <-polled: // or the glance is over: it may wait in another way
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

// judgeCold compares what came of a request with what comes of it once caches have synced.
func judgeCold(t *check.T, c *cold) {
	expected := check.Send(t.Context(), t.Plugin(), c.request)
	switch {
	case expected.Err != nil:
		t.Logf("%s is not looked at: %v", c.request, expected.Err)
		return
	case !c.answered:
		t.Logf("%s was still waiting %s after the caches had synced", c.request, patience)
		return
	case !c.waited && c.got.Err == nil && c.got.Result.Err != nil:
		if expected.Result.Err == nil {
			t.Reached() // refused until it is ready
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
	if again := check.Send(t.Context(), t.Plugin(), c.request); check.Difference(expected, again) != "" && (!check.SameVerdict(expected, again) || check.SameVerdict(expected, c.got)) {
		t.Logf("%s is not looked at: its outcome differs from one plugin to the next", c.request)
		return
	}
	t.Reached()
	when := "while no cache had synced, with no wait for them"
	if c.waited {
		when = "after a wait for the caches to sync"
	}
	t.Errorf("%s %s: %s\nexpected: as when they have synced, or a refusal until then", c.request, when, different)
}

// untilCanceled carries out the request, and cancels it once the plugin waits.
func (c *cold) untilCanceled(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	short, stop := context.WithTimeout(ctx, glance)
	defer stop()
	polled := polls(short, c.world, 2)
	done := check.SendAsync(ctx, c.h, c.request)
	select {
	case c.got = <-done:
		c.answered = true
		return
	case <-polled:
		c.waited = true
	}
	watch, end := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer end()
	cancel()
	polled = polls(watch, c.world, 3)
	select {
	case c.got = <-done:
		c.answered = true
		return
	case <-polled:
		c.late = true
	}
	c.world.MarkSynced()
	c.got, c.answered = check.Within(patience, done)
}

func checkWaitEnds(t *check.T) {
	requireCaches(t, t.Plugin())
	all := coldPlugins(t)
	atOnce(all, func(c *cold) { c.untilCanceled(t.Context()) })
	for _, c := range all {
		switch {
		case c.waited && c.late:
			t.Errorf("%s was canceled while the plugin waited for caches to sync, and it went on waiting: %s", c.request,
				"expected that it returns at once: wait with the context that it is given")
		case c.got.Err != nil:
			t.Logf("%s is not looked at: %v", c.request, c.got.Err)
		case c.waited:
			t.Reached()
		}
	}
}
