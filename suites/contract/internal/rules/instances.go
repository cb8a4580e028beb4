package rules

import (
	"context"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

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
			Title:  "Plugins of one factory, also with different configurations, are independent of each other, and the factory starts no goroutines.",
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
	if t.CompareResponses("after other plugins were built and used in other Worlds, and with other configurations", expected, got, alone) > 0 {
		t.Reached()
	}
	if !t.Failed() {
		checkMemo(t)
	}
}

// checkMemo sends requests to a plugin in the World of the Subject and to one in an empty World, in both orders: what
// the first one learns must not matter to the second one. The namespaces are new in this process, because a plugin can
// have kept something about the others long before.
func checkMemo(t *check.T) {
	answers := func(order ...bool) map[bool][]check.Response {
		suffix, got := "-"+uuid.NewString()[:8], map[bool][]check.Response{}
		for _, full := range order {
			w := t.World()
			objects := w.Objects()
			w.Delete(objects...)
			for i := 0; full && i < len(objects); i++ {
				w.Put(renamedNamespace(objects[i], suffix))
			}
			h := t.PluginIn(w)
			for _, request := range t.Requests() {
				if request.Namespace != "" {
					request.Namespace += suffix
				}
				for _, object := range []*runtime.Object{&request.Object, &request.InProcess.OldObject, &request.InProcess.Parent} {
					*object = renamedNamespace(*object, suffix)
				}
				answer := check.Send(t.Context(), h, request)
				answer.Result.Object = nil // it has the namespace
				got[full] = append(got[full], answer)
			}
		}
		return got
	}
	emptyFirst, fullFirst := answers(false, true), answers(true, false)
	t.CompareResponses("in a new namespace, after a plugin in an empty World got it", fullFirst[true], emptyFirst[true],
		func() []check.Response { return answers(true)[true] })
	t.CompareResponses("in an empty World, after a plugin in the World of the Subject got it", emptyFirst[false], fullFirst[false],
		func() []check.Response { return answers(false)[false] })
}

// renamedNamespace returns a copy of an object with another namespace, or of a Namespace with another name.
func renamedNamespace(object runtime.Object, suffix string) runtime.Object {
	other := check.Copy(object)
	accessor, err := meta.Accessor(other)
	switch {
	case err != nil || other == nil:
	case accessor.GetNamespace() != "":
		accessor.SetNamespace(accessor.GetNamespace() + suffix)
	case kindOf(other) == "Namespace":
		accessor.SetName(accessor.GetName() + suffix)
	}
	return other
}

// others returns plugins in different Worlds: first a plugin whose caches have not synced, then a plugin whose caches
// are empty, and a plugin for each valid configuration. These were built first and get all requests before the first
// one exists, because they might wait for its caches. The last one to be built has another configuration, too.
func others(t *check.T) ([]*harness.Harness, bool) {
	behind, err := t.Build(t.World(fakes.StaleCache()))
	if err == nil {
		t.SendAll(behind)
		all, options := []*harness.Harness{nil, behind}, []harness.Option(nil)
		for _, config := range t.Subject.Configs.Valid {
			if another, wrong := t.Build(t.World(), harness.WithConfig(config)); wrong == nil {
				t.SendAll(another)
				all, options = append(all, another), []harness.Option{harness.WithConfig(config)}
			}
		}
		if all[0], err = t.Build(t.World(fakes.Unsynced(cacheable(t.World())...)), options...); err == nil {
			return all, true
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
