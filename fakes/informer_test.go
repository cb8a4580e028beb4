package fakes_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

type unstructuredObject = unstructured.Unstructured

// Every informer of the generated factory is the World's: it has synced without being
// started.
func TestEveryGeneratedInformerIsOurs(t *testing.T) {
	w, n := fakes.NewWorld(t), 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		mapping, err := w.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			continue
		}
		informer, err := w.Informers().ForResource(mapping.Resource)
		if err != nil {
			continue // not one of those that have an informer
		}
		n++
		if !informer.Informer().HasSynced() {
			t.Errorf("the informer of %s is not the World's", mapping.Resource)
		}
	}
	if n < 50 {
		t.Errorf("found %d informers, want more: the test looks in the wrong place", n)
	}
}

// A factory that is started, waited for and shut down returns at once.
func TestFactoryNeedsNoStart(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")), fakes.Unsynced(&corev1.Secret{}))
	factory := w.Informers()
	factory.Core().V1().Pods().Informer().GetStore()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	if synced := factory.WaitForCacheSync(ctx.Done()); len(synced) != 1 || !synced[reflect.TypeFor[*corev1.Pod]()] {
		t.Errorf("got %v, want the informer that is in use", synced)
	}
	factory.Core().V1().Secrets().Informer().GetStore()
	cancel()
	if synced := factory.WaitForCacheSync(ctx.Done()); len(synced) != 2 || synced[reflect.TypeFor[*corev1.Secret]()] {
		t.Errorf("got %v, want that secrets have not synced", synced)
	}
	factory.Shutdown()
}

func TestUnsyncedCacheIsEmptyUntilMarked(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")), fakes.Unsynced(&corev1.Pod{}))
	informer := w.Informers().Core().V1().Pods().Informer()
	var added []string
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		added = append(added, object.(*corev1.Pod).Name) //nolint:forcetypeassert // informer of pods
	}}); err != nil {
		t.Fatal(err)
	}
	if informer.HasSynced() || len(informer.GetStore().List()) != 0 || informer.LastSyncResourceVersion() != "" {
		t.Error("an unsynced informer has synced")
	}
	if _, err := w.Client().CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the client cannot see it: %v", err)
	}
	w.Put(pod("b"))
	if len(informer.GetStore().List()) != 0 || len(added) != 0 {
		t.Error("an unsynced cache was filled")
	}
	w.MarkSynced(&corev1.Pod{})
	if !informer.HasSynced() || len(informer.GetStore().List()) != 2 || !slices.Equal(added, []string{"a", "b"}) {
		t.Errorf("after MarkSynced: %v, handler got %v, want both pods", informer.GetStore().ListKeys(), added)
	}
	if !w.Informers().Core().V1().Nodes().Informer().HasSynced() {
		t.Error("informers of other types have not synced")
	}
}

// HasSyncedCalls distinguishes a plugin that polls from one that asks once, without a clock.
func TestHasSyncedCalls(t *testing.T) {
	w := fakes.NewWorld(t, fakes.Unsynced(&corev1.Pod{}, &corev1.Node{}))
	informer, result := w.Informers().Core().V1().Pods().Informer(), make(chan bool)
	w.Informers().Core().V1().Secrets().Informer().HasSynced()
	if n := w.HasSyncedCalls(); n != 0 {
		t.Errorf("%d calls, want none for a synced informer", n)
	}
	go func() { result <- cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) }()
	if !w.WaitHasSynced(t.Context(), 2) {
		t.Fatal("there were no 2 calls of HasSynced")
	}
	w.MarkSynced()
	if !<-result {
		t.Error("the poller does not see that the cache has synced")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.WaitHasSynced(ctx, w.HasSyncedCalls()+1) {
		t.Error("WaitHasSynced is true for calls that were not made")
	}
}

func TestStaleCache(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")), fakes.StaleCache())
	lister := w.Informers().Core().V1().Pods().Lister().Pods("default")
	w.PutCache(pod("gone"))
	w.Put(pod("b"))
	if found, err := lister.List(labels.Everything()); err != nil || len(found) != 1 || found[0].Name != "gone" {
		t.Errorf("the cache has %v, want what PutCache put there", found)
	}
	list, err := w.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the client sees %v, %v, want the two stored", list.Items, err)
	}
	if !w.Informers().Core().V1().Pods().Informer().HasSynced() {
		t.Error("a stale cache has synced, long ago")
	}
}

// Handlers are called in the order of the writes, those that write as well.
func TestHandlersInOrder(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a")))
	informer, client := w.Informers().Core().V1().Pods().Informer(), w.Client().CoreV1().Pods("default")
	var got []string
	note := func(what string, object any) { got = append(got, what+" "+object.(*corev1.Pod).Name) } //nolint:forcetypeassert // pods
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			note(fmt.Sprintf("add(%v)", initial), object)
			if object.(*corev1.Pod).Name == "b" { //nolint:forcetypeassert // pods
				if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		},
		UpdateFunc: func(_, object any) { note("update", object) },
		DeleteFunc: func(object any) { note("delete", object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Put(pod("a"))
	if _, err := client.Create(t.Context(), pod("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, 0, w.WaitHandlers(t.Context()))
	want := []string{"add(true) a", "update a", "add(false) b", "delete a"}
	if !slices.Equal(got, want) || !handle.HasSynced() {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := informer.RemoveEventHandler(handle); err != nil {
		t.Fatal(err)
	}
	w.Put(pod("c"))
	if !slices.Equal(got, want) {
		t.Error("a removed handler was called")
	}
}

func TestIndexers(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("b")))
	informer := w.Informers().Core().V1().Pods().Informer()
	if err := informer.AddIndexers(cache.Indexers{"app": func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Labels["app"]}, nil //nolint:forcetypeassert // pods
	}}); err != nil {
		t.Fatal(err)
	}
	changed := pod("b")
	changed.Labels["app"] = "a"
	w.Put(changed)
	found, err := informer.GetIndexer().ByIndex("app", "a")
	if err != nil || len(found) != 2 {
		t.Errorf("got %v, %v, want both", found, err)
	}
}

// With ShuffleLists, a plugin that depends on the order of a list gets other orders.
func TestShuffleLists(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("b"), pod("c"), pod("d"), pod("e")))
	lister := w.Informers().Core().V1().Pods().Lister().Pods("default")
	names := func() (all []string) {
		found, err := lister.List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			all = append(all, p.Name)
		}
		return all
	}
	sorted := names()
	if !slices.IsSorted(sorted) {
		t.Errorf("got %v, want them sorted without a seed", sorted)
	}
	orders := map[string]bool{}
	for seed := range uint64(10) {
		w.ShuffleLists(seed)
		first := names()
		if !slices.Equal(first, names()) {
			t.Error("a seed gives two orders")
		}
		orders[fmt.Sprint(first)] = true
		if all, err := w.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil || all.Items[0].Name != first[0] {
			t.Errorf("a client gets another order: %v, %v", all, err)
		}
	}
	if len(orders) < 5 {
		t.Errorf("ten seeds give %d orders", len(orders))
	}
}

// A change to an object that a test put into a cache through the Indexer is found too.
func TestStoreByHand(t *testing.T) {
	w := fakes.NewWorld(t)
	store := w.Informers().Core().V1().Pods().Informer().GetStore()
	mine := pod("mine")
	if err := store.Add(mine); err != nil {
		t.Fatal(err)
	}
	got, ok, err := store.Get(mine)
	if err != nil || !ok || got != any(mine) {
		t.Fatalf("got %v, %v, %v, want the object itself", got, ok, err)
	}
	if err := store.Replace([]any{pod("other")}, "1"); err != nil {
		t.Fatal(err)
	}
	if keys := store.ListKeys(); !slices.Equal(keys, []string{"default/other"}) {
		t.Errorf("got %v after Replace", keys)
	}
	if err := store.Delete(pod("other")); err != nil || len(store.ListKeys()) != 0 {
		t.Errorf("got %v, %v after Delete", err, store.ListKeys())
	}
	if err := store.Add("text"); err == nil {
		t.Error("a string was put into the cache")
	}
}
