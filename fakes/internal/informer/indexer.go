package informer

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/internal/kinds"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// indexer is the cache of an informer, as plugins and their listers see it. It records which
// objects it returns.
type indexer struct {
	cache.Indexer // the real indexer with its own lock; it has the objects of the items
	inf           *Informer
}

func byKey(a, b *item) int { return cmp.Compare(a.key, b.key) }

// keyOf returns the key of an object in a cache, also of a deleted one.
func keyOf(object any) (string, error) { return cache.DeletionHandlingMetaNamespaceKeyFunc(object) }

// KeyOf returns the key of an object in a cache.
func KeyOf(object runtime.Object) string {
	return cache.MetaObjectToName(kinds.Metadata(object)).String()
}

// List implements cache.Store.
func (i *indexer) List() []any {
	defer i.inf.use()()
	return i.inf.outLocked(i.inf.sortedLocked())
}

// ListKeys implements cache.Store.
func (i *indexer) ListKeys() []string {
	defer i.inf.use()()
	items := i.inf.orderLocked(i.inf.sortedLocked())
	keys := make([]string, len(items))
	for n, it := range items {
		keys[n] = it.key
	}
	return keys
}

// Get implements cache.Store.
func (i *indexer) Get(object any) (any, bool, error) {
	key, err := keyOf(object)
	if err != nil {
		return nil, false, err
	}
	return i.GetByKey(key)
}

// GetByKey implements cache.Store.
func (i *indexer) GetByKey(key string) (any, bool, error) {
	defer i.inf.use()()
	it := i.inf.items[key]
	if it == nil {
		return nil, false, nil
	}
	i.inf.handLocked(it, true)
	return it.object, true, nil
}

// Index implements cache.Indexer.
func (i *indexer) Index(name string, object any) ([]any, error) {
	defer i.inf.use()()
	found, err := i.Indexer.Index(name, object)
	return i.inf.foundLocked(found), err
}

// ByIndex implements cache.Indexer.
func (i *indexer) ByIndex(name, value string) ([]any, error) {
	defer i.inf.use()()
	found, err := i.Indexer.ByIndex(name, value)
	return i.inf.foundLocked(found), err
}

// Add implements cache.Store, for tests that fill caches by hand.
func (i *indexer) Add(object any) error { return i.put(object) }

// Update implements cache.Store.
func (i *indexer) Update(object any) error { return i.put(object) }

func (i *indexer) put(object any) error {
	o, ok := object.(runtime.Object)
	if !ok || objects.IsNil(o) || reflect.TypeOf(o).Kind() != reflect.Pointer {
		return fmt.Errorf("add to cache of %v: got %T, expected a pointer to an object", i.inf.id, object)
	}
	key, err := keyOf(object)
	if err != nil {
		return fmt.Errorf("add to cache of %v: %w", i.inf.id, err)
	}
	unlock := i.inf.use()
	i.inf.placeLocked(&item{inf: i.inf, key: key, object: o, pristine: o.DeepCopyObject()})
	unlock()
	i.inf.set.afterWrite()
	return nil
}

// Delete implements cache.Store.
func (i *indexer) Delete(object any) error {
	key, err := keyOf(object)
	if err != nil {
		return fmt.Errorf("delete from cache of %v: %w", i.inf.id, err)
	}
	unlock := i.inf.use()
	if it := i.inf.items[key]; it != nil {
		i.inf.removeLocked(key, it.object)
	}
	unlock()
	i.inf.set.afterWrite()
	return nil
}

// Replace implements cache.Store.
func (i *indexer) Replace(objects []any, _ string) error {
	unlock := i.inf.use()
	keep := map[string]bool{}
	for _, object := range objects {
		if key, err := keyOf(object); err == nil {
			keep[key] = true
		}
	}
	for _, it := range slices.Clone(i.inf.sortedLocked()) {
		if !keep[it.key] {
			i.inf.removeLocked(it.key, it.object)
		}
	}
	unlock()
	var wrong []error
	for _, object := range objects {
		wrong = append(wrong, i.put(object))
	}
	return errors.Join(wrong...)
}

// LastStoreSyncResourceVersion implements cache.Store.
func (i *indexer) LastStoreSyncResourceVersion() string { return i.inf.LastSyncResourceVersion() }

// foundLocked returns the objects that the real indexer found, in the order that Shuffle sets.
func (inf *Informer) foundLocked(found []any) []any {
	items := make([]*item, 0, len(found))
	for _, object := range found {
		if it := inf.byObject[object]; it != nil {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, byKey)
	return inf.outLocked(items)
}

// outLocked returns the objects of items, and records that a reader got these objects.
func (inf *Informer) outLocked(items []*item) []any {
	items = inf.orderLocked(items)
	objects := make([]any, len(items))
	for i, it := range items {
		inf.handLocked(it, true)
		objects[i] = it.object
	}
	return objects
}

// orderLocked returns items in the order of Shuffle.
func (inf *Informer) orderLocked(items []*item) []*item {
	items = slices.Clone(items)
	inf.set.store.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}
