package fakes

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Objects returns copies of all stored objects, sorted by resource, namespace and name.
func (w *World) Objects() []runtime.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	resources := make([]schema.GroupVersionResource, 0, len(w.store.objects))
	for resource := range w.store.objects {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int { return cmp.Compare(a.String(), b.String()) })
	var all []runtime.Object
	for _, resource := range resources {
		for _, object := range w.store.list(&kind{gvr: resource}, "") {
			all = append(all, object.DeepCopyObject())
		}
	}
	return all
}

// Delete deletes objects from the store and the caches. Event handlers of informers get the
// last state of each object.
func (w *World) Delete(objects ...runtime.Object) {
	w.t.Helper()
	w.delete(objects, false)
}

// DeleteUnseen is Delete while the watches of informers are interrupted: their event handlers
// get a cache.DeletedFinalStateUnknown with the last state that the cache had.
func (w *World) DeleteUnseen(objects ...runtime.Object) {
	w.t.Helper()
	w.delete(objects, true)
}

func (w *World) delete(objects []runtime.Object, unseen bool) {
	w.t.Helper()
	prepared, err := w.prepareAll(objects)
	if err != nil {
		w.t.Fatalf("delete from World: %v", err)
		return
	}
	w.mu.Lock()
	for _, p := range prepared {
		accessor := metadata(p.object)
		at := key{accessor.GetNamespace(), accessor.GetName()}
		if w.store.get(p.kind, at) == nil {
			w.mu.Unlock()
			w.t.Fatalf("delete from World: there is no %s %q", p.kind.gvk.Kind, w.keyOf(p.object))
			return
		}
		last := w.store.remove(p.kind, at)
		if inf := w.caches[p.kind.cacheID()]; unseen && inf != nil && inf.items[w.keyOf(last.object)] != nil {
			inf.loseLocked(w.keyOf(last.object))
		} else {
			w.spreadLocked(last)
		}
	}
	w.mu.Unlock()
	w.waitForHandlers()
}

// loseLocked removes an object from the cache whose deletion the informer did not see.
func (inf *informer) loseLocked(key string) {
	old := inf.items[key]
	queued := len(inf.w.events.queue)
	inf.removeLocked(key, old.object)
	for i := range inf.w.events.queue[queued:] {
		inf.w.events.queue[queued+i].object = cache.DeletedFinalStateUnknown{Key: key, Obj: old.object}
	}
}

// Resync calls OnUpdate of each event handler for each object in its cache, with the same
// object as old and new one, as informers do at each resync period. It returns the number of
// event handlers.
func (w *World) Resync() (handlers int) {
	w.mu.Lock()
	ids := make([]any, 0, len(w.caches))
	for id, inf := range w.caches {
		if len(inf.handlers) > 0 {
			ids, handlers = append(ids, id), handlers+len(inf.handlers)
		}
	}
	slices.SortFunc(ids, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, id := range ids {
		inf := w.caches[id]
		for _, it := range inf.sortedLocked() {
			inf.handLocked(it, true)
			inf.notifyLocked(delivery{typ: watch.Modified, old: it.object, object: it.object})
		}
	}
	w.mu.Unlock()
	w.waitForHandlers()
	return handlers
}
