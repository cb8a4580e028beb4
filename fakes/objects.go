package fakes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
	"github.com/admissiontest/admissiontest/fakes/internal/informer"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Objects returns copies of all stored objects, sorted by resource, namespace and name.
func (w *World) Objects() []runtime.Object {
	w.store.Lock()
	defer w.store.Unlock()
	var all []runtime.Object
	for _, object := range w.store.All() {
		all = append(all, object.DeepCopyObject())
	}
	return all
}

// Put stores copies of objects and puts them into the caches, then waits for event handlers. An
// object replaces the stored object with the same kind, namespace and name. An object that cannot
// be stored, such as one whose kind is unknown, ends the test.
func (w *World) Put(objects ...runtime.Object) {
	w.t.Helper()
	if err := w.put(objects); err != nil {
		w.t.Fatalf("put into World: %v", err)
	}
}

// putFirst puts the objects of WithObjects, each of them once.
func (w *World) putFirst(objects []runtime.Object) error {
	prepared, err := w.prepareAll(objects)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range prepared {
		key := fmt.Sprintf("%s %q", p.kind.GVK, informer.KeyOf(p.object))
		if kinds.Metadata(p.object).GetName() != "" && seen[key] {
			return fmt.Errorf("there are two objects %s: leave one out, or give it another name", key)
		}
		seen[key] = true
	}
	w.putAll(prepared)
	return nil
}

func (w *World) put(objects []runtime.Object) error {
	prepared, err := w.prepareAll(objects)
	if err == nil {
		w.putAll(prepared)
	}
	return err
}

func (w *World) putAll(prepared []prepared) {
	w.t.Helper()
	w.store.Lock()
	for _, p := range prepared {
		w.putLocked(p.kind, p.object)
	}
	w.store.Unlock()
	w.waitForHandlers()
}

// putLocked stores an object that a test gave.
func (w *World) putLocked(k *kinds.Kind, object runtime.Object) {
	accessor := kinds.Metadata(object)
	if accessor.GetName() == "" {
		accessor.SetName(w.store.GenerateName(k, accessor.GetNamespace(), accessor.GetGenerateName()))
	}
	w.store.Set(k, object)
}

// PutCache puts copies of objects into the caches only: a plugin finds them with listers but not
// with clients, as if they had been deleted a moment ago. It also fills caches that are stale or
// have not synced. The objects keep their resource version and UID. Informers that a plugin made
// itself get them only with StaleCache, and with another resource version.
func (w *World) PutCache(objects ...runtime.Object) {
	w.t.Helper()
	prepared, err := w.prepareAll(objects)
	if err != nil {
		w.t.Fatalf("put into caches of World: %v", err)
		return
	}
	copies := make([]runtime.Object, len(prepared))
	for i, p := range prepared {
		copies[i] = p.object
	}
	w.informers.Put(copies...)
	if w.cached != nil {
		w.cached.Lock()
		for _, p := range prepared {
			w.cached.Set(p.kind, p.object.DeepCopyObject())
		}
		w.cached.Unlock()
	}
	w.waitForHandlers()
}

// Delete removes objects from the store and the caches, also objects with finalizers, then waits
// for event handlers. Event handlers get the last state of each object. An object that is not
// stored ends the test.
func (w *World) Delete(objects ...runtime.Object) {
	w.t.Helper()
	w.delete(objects, false)
}

// DeleteUnseen is Delete for a deletion that the watches of informers have missed: event handlers
// get a cache.DeletedFinalStateUnknown with the last state in the cache.
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
	w.store.Lock()
	for _, p := range prepared {
		stored := w.store.Get(p.kind, apiserver.KeyOf(p.object))
		if stored == nil {
			w.store.Unlock()
			w.t.Fatalf("delete from World: there is no %s %q", p.kind.GVK.Kind, informer.KeyOf(p.object))
			return
		}
		if unseen {
			w.informers.LoseLocked(p.kind, stored)
		}
		w.store.Remove(p.kind, apiserver.KeyOf(p.object))
	}
	w.store.Unlock()
	w.waitForHandlers()
}

// Resync calls OnUpdate of each event handler for each object in its cache, as informers do at each
// resync period: the old and the new object are the same. It waits for the event handlers and
// returns how many there are.
func (w *World) Resync() (handlers int) {
	handlers = w.informers.Resync()
	w.waitForHandlers()
	return handlers
}

// prepared is a checked copy of an object that a test gave.
type prepared struct {
	kind   *kinds.Kind
	object runtime.Object
}

// prepareAll checks and copies objects. It replaces a list by its items.
func (w *World) prepareAll(objects []runtime.Object) ([]prepared, error) {
	all := make([]prepared, 0, len(objects))
	for i, each := range objects {
		if object.IsNil(each) {
			return nil, errNil(i, len(objects))
		}
		if meta.IsListType(each) {
			items, err := meta.ExtractList(each)
			if err != nil {
				return nil, fmt.Errorf("take list %T apart: %w", each, err)
			}
			more, err := w.prepareAll(items)
			if err != nil {
				return nil, fmt.Errorf("list %T: %w", each, err)
			}
			all = append(all, more...)
			continue
		}
		p, err := w.prepare(each)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (w *World) prepare(object runtime.Object) (prepared, error) {
	k, err := w.kinds.ByObject(object)
	if err != nil {
		return prepared{}, err
	}
	if k.Review {
		return prepared{}, fmt.Errorf("kind %s is never stored, because it is a review: leave it out", k.GVK)
	}
	object = object.DeepCopyObject()
	if u, ok := object.(*unstructured.Unstructured); ok && k.Type != nil {
		object = k.Empty()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			return prepared{}, fmt.Errorf("convert unstructured %s %q to %T: %w", k.GVK, u.GetName(), object, err)
		}
	}
	if k.Type != nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	accessor := kinds.Metadata(object)
	switch {
	case accessor.GetName() == "" && accessor.GetGenerateName() == "":
		return prepared{}, fmt.Errorf("a %s has no name: give it metadata.name", k.GVK.Kind)
	case !k.Namespaced && accessor.GetNamespace() != "":
		return prepared{}, fmt.Errorf("%s %q has namespace %q and its kind is cluster-scoped: leave the namespace out", k.GVK.Kind, accessor.GetName(), accessor.GetNamespace())
	}
	return prepared{k, object}, nil
}

func errNil(i, n int) error {
	return fmt.Errorf("object %d of %d is nil: expected a pointer to an object", i+1, n)
}
