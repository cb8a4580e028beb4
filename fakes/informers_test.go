package fakes_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes"
)

// ownInformer starts an informer of namespaces as a plugin does that makes its informers itself.
func ownInformer(t *testing.T, w *fakes.World) cache.SharedIndexInformer {
	t.Helper()
	factory := informers.NewSharedInformerFactory(w.Client(), 0)
	informer := factory.Core().V1().Namespaces().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return informer
}

func synced(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced after a minute")
	}
}

func has(informer cache.SharedIndexInformer, name string) bool {
	_, found, err := informer.GetIndexer().GetByKey(name)
	return err == nil && found
}

// TestOwnInformer: when a method for tests has changed an object, the informer of a plugin has it.
func TestOwnInformer(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("first")))
	before := w.Snapshot()
	informer := ownInformer(t, w)
	synced(t, informer)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.Put(namespace(name))
		if !has(informer, name) {
			t.Errorf("after Put, the cache does not have %q", name)
		}
		w.Delete(namespace(name))
		if has(informer, name) {
			t.Errorf("after Delete, the cache has %q", name)
		}
	}
	for _, call := range w.Calls() {
		if !call.Informer {
			t.Errorf("%s: Informer is false, want true", call)
		}
	}
	if _, err := w.Client().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if calls := before.Calls(); len(calls) != 1 || calls[0].Informer {
		t.Errorf("the calls of the Snapshot are %q, want only the list of the test", calls)
	}
}

// TestOwnInformerUnsynced: Unsynced holds the objects of a plugin's informer back, until MarkSynced.
func TestOwnInformerUnsynced(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("first")), fakes.Unsynced(&corev1.Namespace{}))
	informer := ownInformer(t, w)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || !w.HasUnsynced() {
		t.Error("the informer has synced, before MarkSynced")
	}
	w.MarkSynced()
	synced(t, informer)
	if !has(informer, "first") || w.HasUnsynced() {
		t.Error("after MarkSynced, the cache does not have the object")
	}
}

// TestOwnInformerStale: with StaleCache, the informer of a plugin has only the objects of PutCache.
func TestOwnInformerStale(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("first")), fakes.StaleCache())
	informer := ownInformer(t, w)
	synced(t, informer)
	w.Put(namespace("second"))
	w.PutCache(namespace("third"))
	if has(informer, "first") || has(informer, "second") || !has(informer, "third") {
		t.Errorf("the cache has %q, want only the third namespace", informer.GetIndexer().ListKeys())
	}
}

// TestFollowCaches: a change to an object in the cache of a plugin's informer is found, once.
func TestFollowCaches(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("first")))
	informer := ownInformer(t, w)
	synced(t, informer)
	w.FollowCaches(informer.GetIndexer())
	w.Put(namespace("second"))
	snapshot := w.Snapshot()
	for _, name := range []string{"first", "second"} {
		object, _, _ := informer.GetIndexer().GetByKey(name)
		object.(*corev1.Namespace).Labels = map[string]string{"changed": "true"}
	}
	if found := snapshot.Mutations(); len(found) != 2 || found[0].Kind.Kind != "Namespace" {
		t.Errorf("got %v, want the changes of both namespaces", found)
	}
	if found := snapshot.Mutations(); len(found) != 0 {
		t.Errorf("the second time, got %v, want none", found)
	}
}
