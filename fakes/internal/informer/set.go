// Package informer has the informers of a World. They have no reflector: each change of the store
// also changes the caches.
//
// # Promise
//
// When a write to the store returns, the object is in the caches. Event handlers run on another
// goroutine, one at a time, in the order of the writes. Every change to a cached object is found
// ([Set.Mutations]).
package informer

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Set has one informer for each type of object. Make a Set with New. The lock of the Store guards
// it. A method whose name ends in Locked must be called with this lock held; the other methods take
// the lock if they need it.
type Set struct {
	kinds *kinds.Registry
	store *apiserver.Store
	stale bool

	afterWrite, beforeHandler func()

	informers map[any]*Informer // by id
	unsynced  map[any]bool      // by id
	handed    []*item
	followed  []cache.Store
	others    map[any]*item // by object: what followed caches had at the last mark
	epoch     uint64
	asked     int
	asking    apiserver.Signal
	events    events
}

// Options configure a Set. All fields but Stale must be set.
type Options struct {
	Kinds *kinds.Registry
	// Store is the store that the caches follow. New sets Store.OnChange.
	Store *apiserver.Store
	// Stale means that the caches do not follow the store: only Put fills them.
	Stale bool
	// AfterWrite is called without the lock after a test has changed a cache through its Indexer.
	AfterWrite func()
	// BeforeHandler is called without the lock before an event handler is added.
	BeforeHandler func()
}

// New returns a Set whose caches follow the store. They are filled when they are first used.
func New(options Options) *Set {
	s := &Set{
		kinds: options.Kinds, store: options.Store, stale: options.Stale,
		afterWrite: options.AfterWrite, beforeHandler: options.BeforeHandler,
		informers: map[any]*Informer{}, unsynced: map[any]bool{},
	}
	options.Store.OnChange = s.spreadLocked
	return s
}

// idOf returns the id of the informer of an object: its type, or the kind of an unstructured object.
func idOf(object runtime.Object) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.GroupVersionKind()
	}
	return reflect.TypeOf(object)
}

// idOfKind returns the id of the informer of a kind.
func idOfKind(k *kinds.Kind) any {
	if k.Type == nil {
		return k.GVK
	}
	return reflect.PointerTo(k.Type)
}

// ID returns the id of the informer for the type of an object. It returns an error if the object is
// unstructured and no scheme or mapping knows its kind.
func (s *Set) ID(object runtime.Object) (any, error) {
	id := idOf(object)
	if gvk, ok := id.(schema.GroupVersionKind); ok {
		k, err := s.kinds.ByKind(gvk)
		if err != nil {
			return nil, err
		}
		id = idOfKind(k)
	}
	return id, nil
}

// kindOf finds the kind of the objects of an informer. It is nil for a type that is in no scheme.
func (s *Set) kindOf(id any) *kinds.Kind {
	if gvk, ok := id.(schema.GroupVersionKind); ok {
		if k, err := s.kinds.ByKind(gvk); err == nil {
			return k
		}
		return nil
	}
	typ, ok := id.(reflect.Type)
	if !ok || typ.Kind() != reflect.Pointer {
		return nil
	}
	object, ok := reflect.New(typ.Elem()).Interface().(runtime.Object)
	if !ok {
		return nil
	}
	if k, err := s.kinds.ByObject(object); err == nil {
		return k
	}
	return nil
}

// Informer returns the informer of an object's type.
func (s *Set) Informer(object runtime.Object) *Informer {
	s.store.Lock()
	defer s.store.Unlock()
	inf := s.informerLocked(idOf(object))
	inf.readyLocked()
	return inf
}

// Put puts objects into the caches only, also into caches that are stale or have not synced. The
// caller must not change the objects afterwards.
func (s *Set) Put(objects ...runtime.Object) {
	s.store.Lock()
	defer s.store.Unlock()
	for _, object := range objects {
		inf := s.informerLocked(idOf(object))
		inf.fillLocked()
		inf.setLocked(object)
	}
}

// spreadLocked applies a change of the store to the cache of its type.
func (s *Set) spreadLocked(c apiserver.Change) {
	inf := s.informers[idOfKind(c.Kind)]
	if inf == nil || !inf.filled || s.stale {
		return
	}
	if c.Type == watch.Deleted {
		inf.removeLocked(KeyOf(c.Object), c.Object)
		return
	}
	inf.setLocked(c.Object)
}

// LoseLocked removes an object from its cache as if the watch of the informer had missed the
// deletion: event handlers get a cache.DeletedFinalStateUnknown with the last state in the cache.
// Call it before the object is removed from the store.
func (s *Set) LoseLocked(k *kinds.Kind, object runtime.Object) {
	key, inf := KeyOf(object), s.informers[idOfKind(k)]
	if inf == nil || inf.items[key] == nil {
		return
	}
	old := inf.items[key].object
	queued := len(s.events.queue)
	inf.removeLocked(key, old)
	for i := range s.events.queue[queued:] {
		s.events.queue[queued+i].object = cache.DeletedFinalStateUnknown{Key: key, Obj: old}
	}
}

// WaitSynced waits until the objects of a resource may be in caches: until MarkSynced, if MarkUnsynced
// was called for its informer. It returns the error of the context if that ends first.
func (s *Set) WaitSynced(ctx context.Context, resource schema.GroupVersionResource) error {
	k := s.kinds.ByResource(resource)
	if k == nil {
		return nil
	}
	s.store.Lock()
	synced := s.informerLocked(idOfKind(k)).synced
	s.store.Unlock()
	select {
	case <-synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MarkUnsynced makes HasSynced of the informers with these IDs return false, and keeps their caches
// empty, until MarkSynced. Call it before the first use of the informers.
func (s *Set) MarkUnsynced(ids []any) {
	s.store.Lock()
	defer s.store.Unlock()
	for _, id := range ids {
		s.unsynced[id] = true
	}
}

// MarkSynced makes HasSynced of the informers with these IDs return true, and fills their caches
// from the store. Without IDs it does so for all informers.
func (s *Set) MarkSynced(ids []any) {
	s.store.Lock()
	defer s.store.Unlock()
	if len(ids) == 0 {
		for id := range s.unsynced {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		delete(s.unsynced, id)
		if inf := s.informers[id]; inf != nil {
			inf.markSyncedLocked()
		}
	}
}

// HasUnsynced reports whether informers of MarkUnsynced are left.
func (s *Set) HasUnsynced() bool {
	s.store.Lock()
	defer s.store.Unlock()
	return len(s.unsynced) > 0
}

// HasSyncedCalls returns how many times HasSynced was called on informers that had not synced, or
// Done on their checkers.
func (s *Set) HasSyncedCalls() int {
	s.store.Lock()
	defer s.store.Unlock()
	return s.asked
}

// WaitHasSynced waits until HasSyncedCalls is n or more. It returns false if the context ends
// first.
func (s *Set) WaitHasSynced(ctx context.Context, n int) bool {
	for {
		s.store.Lock()
		asked, next := s.asked, s.asking.Wait()
		s.store.Unlock()
		if asked >= n {
			return true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}
