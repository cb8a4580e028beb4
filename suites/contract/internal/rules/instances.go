package rules

import (
	"context"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// instanceRules returns the rules for several plugins of one factory.
func instanceRules() []check.Rule {
	return []check.Rule{
		{
			ID: "K3", Name: "instances-are-independent", Level: framework.Must,
			Title:  "Plugins of one factory are independent of each other, and the factory starts no goroutines.",
			Why:    "All API servers of a process share its package variables, in tests too. With a shared list of ready functions, each instance waits for the caches of all instances.",
			Fix:    "Keep state in the plugin and not in package variables. Start nothing in the factory.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/108483", "https://github.com/kubernetes/kubernetes/issues/110529"},
			Check:  checkInstances,
			// Plugins of other checks would change what instances share.
			Exclusive: true,
		},
		{
			ID: "K4", Name: "registers-one-name", Level: framework.Should,
			Title:  "The register function registers its plugin under exactly one name.",
			Why:    "A second registration of the same name ends the process. Under a second name the plugin runs twice.",
			Fix:    "Call Plugins.Register once in each register function.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Plugins.Register"},
			Check:  checkRegistered,
		},
	}
}

func checkInstances(t *check.T) {
	_ = t.NewPlugin() // so goroutines that start only once in a process run already
	started := processes.NewLabel()
	started.Do(func() { _ = t.NewPlugin() })
	if left := check.GoroutinesLeft(t.Context(), moment, started.Running); len(left) > 0 {
		t.Errorf("the factory started goroutines, which cannot be stopped:\n%s\nwant: the plugin starts them in SetDrainedNotification", strings.Join(left, "\n"))
	}
	alone := func() []check.Response { return t.SendAll(t.Plugin()) }
	expected := alone()
	first := t.Plugin()
	others, ok := others(t)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	unsynced := others[0].World()
	// A plugin that waits for its caches in its own goroutine also polls. Then only the responses
	// can show that another plugin depends on these caches.
	asksItself := len(others[0].Goroutines()) > 0
	polled, asked := polls(ctx, unsynced, 1), unsynced.HasSyncedCalls()
	before := make([]*fakes.Snapshot, len(others))
	for i, other := range others {
		before[i] = other.World().Snapshot()
	}
	done := make(chan []check.Response, 1)
	go func() { done <- t.SendAll(first) }()
	var got []check.Response
	select {
	case got = <-done:
	case <-polled: // the plugin polls the wrong caches, perhaps for a long time
		unsynced.MarkSynced()
		got = <-done
	}
	if !asksItself && unsynced.HasSyncedCalls() > asked {
		t.Errorf("a plugin waits for the caches of another plugin, in another World")
	}
	for _, snapshot := range before {
		if calls := snapshot.Calls(); len(calls) > 0 {
			t.Errorf("a plugin called the client of another plugin, in another World:\n%s", calls)
		}
	}
	if t.CompareResponses("after other plugins were built and used in other Worlds", expected, got, alone) > 0 {
		t.Reached()
	}
}

// others returns two plugins in different Worlds: first a plugin whose caches have not synced, then
// a plugin whose caches are empty. The second plugin was built first and gets all requests before
// the other one exists, because it might wait for the other's caches.
func others(t *check.T) ([]*harness.Harness, bool) {
	behind, err := t.Build(t.World(fakes.StaleCache()))
	if err == nil {
		t.SendAll(behind)
		var cold *harness.Harness
		if cold, err = t.Build(t.World(fakes.Unsynced(cacheable(t.World())...))); err == nil {
			return []*harness.Harness{cold, behind}, true
		}
	}
	t.Logf("build a second plugin in a World with empty caches: %v", err)
	return nil, false
}

func checkRegistered(t *check.T) {
	names, ok, err := t.Subject.Source.Registered()
	switch {
	case !ok:
		t.Unsupported("the Source is a factory: use harness.FromRegister to check this rule")
	case err != nil:
		t.Fatalf("%v", err)
	}
	plugin := reflect.TypeOf(t.NewPlugin())
	var same []string
	for _, name := range names {
		// A function that registers all plugins also registers other types.
		if other, err := t.Subject.Source.Other(name).Plugin(t.Configuration()); err == nil && reflect.TypeOf(other) == plugin {
			same = append(same, name)
		}
	}
	if len(same) < 2 && len(names) > 1 {
		t.Unsupported("the function in harness.FromRegister registers %d plugins: use one that registers only this plugin", len(names))
	}
	t.Reached()
	if len(same) > 1 {
		t.Errorf("the register function registers the plugin (%v) under %d names: %s", plugin, len(same), strings.Join(same, ", "))
	}
}
