package informer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Informer is an informer without a reflector: the Set writes to the cache. The lock of the Store
// guards the fields.
type Informer struct {
	// SharedIndexInformer is a real informer that is never started. It provides the methods that
	// later versions of the interface add. Its HasSyncedChecker returns a checker{}.
	cache.SharedIndexInformer

	set       *Set
	id        any         // idOf its objects
	kind      *kinds.Kind // found at the first use; nil for a type that is in no scheme
	synced    chan struct{}
	hasSynced bool
	filled    bool
	filling   bool // events are about the first objects
	touched   bool
	stopped   bool
	index     cache.Indexer
	transform cache.TransformFunc
	items     map[string]*item
	byObject  map[any]*item
	sorted    []*item // nil if it has to be sorted again
	handlers  []*registration
}

// item is an object in a cache and its original content.
type item struct {
	inf      *Informer
	key      string
	object   runtime.Object
	pristine runtime.Object
	epoch    uint64 // Set.epoch+1 at the time a reader last got the item; 0 if no reader did
}

// informer returns the informer with an id. It makes one at the first call.
func (s *Set) informer(id any) *Informer {
	s.store.Lock()
	defer s.store.Unlock()
	return s.informerLocked(id)
}

func (s *Set) informerLocked(id any) *Informer {
	if inf := s.informers[id]; inf != nil {
		return inf
	}
	inf := &Informer{set: s, id: id, synced: make(chan struct{})}
	inf.SharedIndexInformer = minor.Informer(cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{}), inf.checker)
	if !s.unsynced[id] {
		inf.hasSynced = true
		close(inf.synced)
	}
	s.informers[id] = inf
	return inf
}

// Kind returns the kind of the informer's objects. It is nil for a type that is in no scheme.
func (inf *Informer) Kind() *kinds.Kind { return inf.kind }

// Owns reports whether an Indexer is that of this informer.
func (inf *Informer) Owns(i cache.Indexer) bool {
	own, ok := i.(*indexer)
	return ok && own.inf == inf
}

// readyLocked initializes the parts of an informer that only a used informer needs.
func (inf *Informer) readyLocked() {
	if inf.index != nil {
		return
	}
	inf.index = cache.NewIndexer(keyOf, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	inf.items, inf.byObject = map[string]*item{}, map[any]*item{}
	inf.kind = inf.set.kindOf(inf.id)
}

// fillLocked fills the cache from the store, the first time.
func (inf *Informer) fillLocked() {
	inf.readyLocked()
	if inf.filled || !inf.hasSynced {
		return
	}
	inf.filled = true
	if inf.set.stale || inf.kind == nil {
		return
	}
	inf.filling = true
	for _, object := range inf.set.store.List(inf.kind, "") {
		inf.setLocked(object)
	}
	inf.filling = false
}

// setLocked puts a copy of an object into the cache. It keeps the object itself for later
// comparison with the copy, so the caller must not change the object.
func (inf *Informer) setLocked(pristine runtime.Object) {
	it := &item{inf: inf, key: KeyOf(pristine), pristine: pristine, object: pristine.DeepCopyObject()}
	if inf.transform != nil {
		if changed, err := inf.transform(it.object); err == nil {
			if object, ok := changed.(runtime.Object); ok {
				it.object, it.pristine = object, object.DeepCopyObject()
			}
		}
	}
	inf.placeLocked(it)
}

// placeLocked puts an item into the cache and queues its event for the handlers.
func (inf *Informer) placeLocked(it *item) {
	d := delivery{typ: watch.Added, object: it.object}
	if old := inf.items[it.key]; old != nil {
		d.typ, d.old = watch.Modified, old.object
		inf.handLocked(old, len(inf.handlers) > 0)
		delete(inf.byObject, old.object)
	}
	inf.items[it.key], inf.byObject[it.object], inf.sorted = it, it, nil
	_ = inf.index.Update(it.object) // the key function has accepted the object before
	inf.handLocked(it, len(inf.handlers) > 0)
	inf.notifyLocked(d)
}

func (inf *Informer) removeLocked(key string, last runtime.Object) {
	old := inf.items[key]
	if old == nil {
		return
	}
	delete(inf.items, key)
	delete(inf.byObject, old.object)
	inf.sorted = nil
	_ = inf.index.Delete(old.object)
	inf.notifyLocked(delivery{typ: watch.Deleted, object: last.DeepCopyObject()})
}

func (inf *Informer) markSyncedLocked() {
	if inf.hasSynced {
		return
	}
	inf.hasSynced = true
	close(inf.synced)
	if inf.index != nil {
		inf.fillLocked()
	}
	for _, r := range inf.handlers {
		r.updateLocked()
	}
}

// handLocked records that a reader gets an item. It does nothing if out is false.
func (inf *Informer) handLocked(it *item, out bool) {
	if s := inf.set; out && it.epoch != s.epoch+1 {
		it.epoch = s.epoch + 1
		s.handed = append(s.handed, it)
	}
}

// sortedLocked returns the items, sorted by their keys.
func (inf *Informer) sortedLocked() []*item {
	if inf.sorted == nil {
		inf.sorted = make([]*item, 0, len(inf.items))
		for _, it := range inf.items {
			inf.sorted = append(inf.sorted, it)
		}
		slices.SortFunc(inf.sorted, byKey)
	}
	return inf.sorted
}

func (inf *Informer) use() func() {
	inf.set.store.Lock()
	inf.touched = true
	inf.fillLocked()
	return inf.set.store.Unlock
}

// HasSynced implements cache.SharedInformer.
func (inf *Informer) HasSynced() bool {
	defer inf.use()()
	inf.askLocked()
	return inf.hasSynced
}

func (inf *Informer) askLocked() {
	if !inf.hasSynced {
		inf.set.asked++
		inf.set.asking.Raise()
	}
}

// checker returns what HasSyncedChecker returns.
func (inf *Informer) checker() minor.Checker {
	defer inf.use()()
	return checker{inf}
}

type checker struct{ inf *Informer }

// Name implements minor.Checker.
func (c checker) Name() string { return fmt.Sprint(c.inf.id) }

// Done implements minor.Checker.
func (c checker) Done() <-chan struct{} {
	defer c.inf.use()()
	c.inf.askLocked()
	return c.inf.synced
}

// Run implements cache.SharedInformer. It does nothing until the channel is closed.
func (inf *Informer) Run(stop <-chan struct{}) {
	<-stop
	inf.stop()
}

// RunWithContext implements cache.SharedInformer. It does nothing until the context ends.
func (inf *Informer) RunWithContext(ctx context.Context) {
	<-ctx.Done()
	inf.stop()
}

func (inf *Informer) stop() {
	inf.set.store.Lock()
	defer inf.set.store.Unlock()
	inf.stopped = true
}

// IsStopped implements cache.SharedInformer.
func (inf *Informer) IsStopped() bool {
	defer inf.use()()
	return inf.stopped
}

// LastSyncResourceVersion implements cache.SharedInformer.
func (inf *Informer) LastSyncResourceVersion() string {
	defer inf.use()()
	return inf.revisionLocked()
}

func (inf *Informer) revisionLocked() string {
	if !inf.hasSynced {
		return ""
	}
	return inf.set.store.Version()
}

// SetTransform implements cache.SharedInformer. The generated factories of client-go call it with
// nil for each informer that they make, so a call with nil does not count as a use of the informer.
func (inf *Informer) SetTransform(transform cache.TransformFunc) error {
	if transform == nil && !inf.transforms() {
		return nil
	}
	defer inf.use()()
	inf.transform = transform
	for _, it := range slices.Clone(inf.sortedLocked()) {
		inf.setLocked(it.pristine)
	}
	return nil
}

// transforms reports whether the informer has a transform function.
func (inf *Informer) transforms() bool {
	inf.set.store.Lock()
	defer inf.set.store.Unlock()
	return inf.transform != nil
}

// AddIndexers implements cache.SharedIndexInformer.
func (inf *Informer) AddIndexers(indexers cache.Indexers) error {
	defer inf.use()()
	return inf.index.AddIndexers(indexers)
}

// GetStore implements cache.SharedInformer.
func (inf *Informer) GetStore() cache.Store { return inf.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (inf *Informer) GetIndexer() cache.Indexer {
	defer inf.use()()
	return &indexer{Indexer: inf.index, inf: inf}
}

// GetController implements cache.SharedInformer.
func (inf *Informer) GetController() cache.Controller {
	defer inf.use()()
	return controller{minor.Controller(inf.SharedIndexInformer.GetController(), inf.checker), inf}
}

// SetWatchErrorHandler implements cache.SharedInformer: nothing is watched.
func (inf *Informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer: nothing is watched.
func (inf *Informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

type controller struct {
	cache.Controller
	inf *Informer
}

func (c controller) Run(stop <-chan struct{})           { c.inf.Run(stop) }
func (c controller) RunWithContext(ctx context.Context) { c.inf.RunWithContext(ctx) }
func (c controller) HasSynced() bool                    { return c.inf.HasSynced() }
func (c controller) LastSyncResourceVersion() string    { return c.inf.LastSyncResourceVersion() }

// AddEventHandler implements cache.SharedInformer.
func (inf *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. Nothing is ever resynced.
func (inf *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}
