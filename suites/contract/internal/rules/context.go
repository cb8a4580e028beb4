package rules

import (
	"context"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// mark is the key of a value in the contexts of requests.
type mark struct{}

// caller is a plugin whose calls are recorded with their contexts.
type caller struct {
	t       *check.T
	options []fakes.Option
	// asked records the calls of the authorizer.
	asked *fakes.Authorizer
	h     *harness.Harness
}

// newCaller builds a plugin whose authorizer records contexts.
func newCaller(t *check.T, options ...fakes.Option) *caller {
	c := &caller{t: t, options: options, asked: fakes.Allow()}
	w := t.World(options...)
	h, err := t.BuildWith(w, t.Initializer(w, fakes.InjectAuthorizer(c.asked)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	c.h = h
	return c
}

// calls sends a request, and returns the calls that the plugin makes for it, with their
// contexts.
func (c *caller) calls(ctx context.Context, request framework.Request) (names []string, contexts []context.Context) {
	before, questions := c.h.World().Snapshot(), len(c.asked.Contexts())
	if got := check.Send(ctx, c.h, request); got.Err != nil {
		c.t.Logf("ignored %s: %v", request, got.Err)
		return nil, nil
	}
	for _, call := range before.Calls() {
		if call.Path != "" {
			continue // discovery and schemas do not belong to a request
		}
		names, contexts = append(names, call.String()), append(contexts, call.Context)
	}
	for i, asked := range c.asked.Contexts()[questions:] {
		question := c.asked.Requests()[questions+i]
		names = append(names, fmt.Sprintf("authorize %s %s %s", question.Verb, question.Resource, question.Name))
		contexts = append(contexts, asked)
	}
	return names, contexts
}

// requireClients ends the check as unsupported if neither clients nor an authorizer are
// injected.
func requireClients(t *check.T) {
	quiet := []string{
		"WantsAPIServerID", "WantsDrainedNotification", "WantsEffectiveVersion", "WantsFeatures", "WantsExternalKubeInformerFactory",
		"WantsRESTMapper", "WantsQuotaConfiguration", "WantsExcludedAdmissionResources",
	}
	for _, name := range check.InjectedNames(t.Plugin().Initializer().Log()) {
		if !slices.Contains(quiet, name) {
			return
		}
	}
	t.Unsupported("neither a client nor an authorizer is injected into the plugin")
}

func checkContext(t *check.T) {
	requireClients(t)
	blocking := map[int][]fakes.Option{}
	lost := map[int]bool{}
	for _, options := range settings() {
		c := newCaller(t, options...)
		for i, request := range t.Requests() {
			ctx := context.WithValue(t.Context(), mark{}, i)
			before := c.h.World().Snapshot()
			names, contexts := c.calls(ctx, request)
			for n, name := range names {
				t.Reached()
				if contexts[n] != nil && contexts[n].Value(mark{}) == i {
					continue
				}
				if !lost[i] {
					t.Errorf("%s: call %q does not have the context of the request. want: the context of Admit or Validate, or one derived from it", request, name)
				}
				lost[i] = true
			}
			if len(before.Calls()) > 0 && blocking[i] == nil {
				blocking[i] = options
			}
		}
	}
	for i, request := range t.Requests() {
		if options, ok := blocking[i]; ok && !lost[i] {
			cancelBlocked(t, request, options)
		}
		if t.Failed() {
			return // each request may take as long
		}
	}
}

// cancelBlocked cancels a request while a call of the plugin is blocked.
func cancelBlocked(t *check.T, request framework.Request, options []fakes.Option) {
	c := newCaller(t, options...)
	w := c.h.World()
	before := w.Snapshot()
	release := w.BlockOn("*", "*")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := check.SendAsync(ctx, c.h, request)
	if !check.Poll(t.Context(), glance, func() bool { return len(before.Calls()) > 0 || len(done) > 0 }) || len(done) > 0 {
		return // this time the plugin made no call
	}
	cancel()
	if _, ok := check.Within(patience, done); !ok {
		t.Errorf("%s was canceled while the call %q was blocked, and the plugin did not return within %s. want: the call ends with the context of the request", request, before.Calls()[0], patience)
		release()
		_, _ = check.Within(glance, done)
	}
}
