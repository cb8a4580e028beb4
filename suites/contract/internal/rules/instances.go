package rules

import (
	"context"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/goroutines"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// instanceProperties returns the properties of several plugins of one factory.
func instanceRules() []check.Rule {
	return []check.Rule{
		{
			ID: "K3", Name: "instances-are-independent", Level: framework.Must,
			Title:  "Plugins that one factory has built know nothing of one another, and building begins nothing.",
			Why:    "State of the package is shared by every API server of the process, tests among them: a list of ready functions that each instance appends to makes each wait for the caches of all.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/108483", "https://github.com/kubernetes/kubernetes/issues/110529"},
			Check:  checkInstances,
		},
		{
			ID: "K4", Name: "registers-one-name", Level: framework.Should,
			Title:  "A register function registers its plugin under one name.",
			Why:    "A second registration of a name ends the process. A second name is a plugin that nobody meant to switch on, and that runs after the first.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Plugins.Register"},
			Check:  checkRegistered,
		},
	}
}

func checkInstances(t *check.T) {
	t.RequirePlugin()
	_ = t.NewPlugin() // what the process needs once is there from now on
	started := goroutines.NewLabel()
	started.Do(func() { _ = t.NewPlugin() })
	if left := check.GoroutinesLeft(t.Context(), moment, started.Running); len(left) > 0 {
		t.Errorf("the factory began goroutines, which nobody can end:\n%s\nexpected that a plugin begins them when it is given its drained notification", strings.Join(left, "\n"))
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
	// One that waits for its caches in a goroutine of its own asks too: then answers alone tell.
	asksItself := len(others[0].Goroutines()) > 0
	polled, asked := polls(ctx, unsynced, 1), unsynced.HasSyncedCalls()
	before := make([]int, len(others))
	for i, other := range others {
		before[i] = len(other.World().Calls())
	}
	done := make(chan []check.Response, 1)
	go func() { done <- t.SendAll(first) }()
	var got []check.Response
	select {
	case got = <-done:
	case <-polled: // which it may do for long
		unsynced.MarkSynced()
		got = <-done
	}
	if !asksItself && unsynced.HasSyncedCalls() > asked {
		t.Errorf("a plugin asked whether the caches of another plugin, in another World, have synced")
	}
	for i, other := range others {
		if calls := other.World().Calls()[before[i]:]; len(calls) > 0 {
			t.Errorf("a plugin called the client of another plugin, in another World:\n%s", calls)
		}
	}
	if t.CompareResponses("after other plugins had been built, in other Worlds, and used", expected, got, alone) > 0 {
		t.Reached()
	}
}

// others returns plugins in Worlds that differ: one whose caches have not synced, and one
// without cached objects, which has had all requests. It had them before there was the
// other one, for which it might wait.
func others(t *check.T) ([]*harness.Harness, bool) {
	behind, err := t.Build(t.World(fakes.StaleCache()))
	if err == nil {
		t.SendAll(behind)
		var cold *harness.Harness
		if cold, err = t.Build(t.World(fakes.Unsynced(cacheable(t.World())...))); err == nil {
			return []*harness.Harness{cold, behind}, true
		}
	}
	t.Logf("a second plugin cannot be had in a World whose caches are empty: %v", err)
	return nil, false
}

func checkRegistered(t *check.T) {
	names, ok, err := t.Subject.Source.Registered()
	switch {
	case !ok:
		t.Unsupported("the Source is a factory: give harness.FromRegister")
	case err != nil:
		t.Fatalf("%v", err)
	}
	plugin := reflect.TypeOf(t.NewPlugin())
	var same []string
	for _, name := range names {
		// What is not of the same type is another plugin, of a function that registers all.
		if other, err := t.Subject.Source.Other(name).Plugin(t.Configuration()); err == nil && reflect.TypeOf(other) == plugin {
			same = append(same, name)
		}
	}
	if len(same) < 2 && len(names) > 1 {
		t.Unsupported("the function given to harness.FromRegister registers %d plugins: give it the one of this plugin alone", len(names))
	}
	t.Reached()
	if len(same) > 1 {
		t.Errorf("the register function registers the plugin (%v) under %d names: %s", plugin, len(same), strings.Join(same, ", "))
	}
}
