package informer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Mutation is a change to an object of a cache. Package fakes documents its fields.
type Mutation struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Diff            string
}

// String returns "v1 Namespace default: " and Diff.
func (m Mutation) String() string {
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s: %s", m.Kind.GroupVersion(), m.Kind.Kind, name, m.Diff)
}

// MarkLocked returns a mark for Mutations and Read. It copies no objects of the Set's own caches.
func (s *Set) MarkLocked() int {
	s.epoch++
	s.copyOthersLocked()
	return len(s.handed)
}

// Read reports whether the caches have returned any object since a mark. Nobody knows what caches of
// Follow have returned: Read takes it that they have returned what they have.
func (s *Set) Read(mark int) bool {
	s.store.Lock()
	defer s.store.Unlock()
	return len(s.handed) > mark || len(s.others) > 0
}

// Follow makes Mutations also return changes to the objects of caches that are not of the Set. They
// are compared with what they were at the last mark.
func (s *Set) Follow(caches ...cache.Store) {
	s.store.Lock()
	defer s.store.Unlock()
	s.followed = append(s.followed, caches...)
	s.copyOthersLocked()
}

// copyOthersLocked copies the objects of followed caches that it does not know yet.
func (s *Set) copyOthersLocked() {
	others := map[any]*item{}
	for _, followed := range s.followed {
		for _, each := range followed.List() {
			object, ok := each.(runtime.Object)
			if !ok {
				continue
			}
			if others[each] = s.others[each]; others[each] == nil {
				others[each] = &item{object: object, pristine: object.DeepCopyObject()}
			}
		}
	}
	s.others = others
}

// Mutations returns the changes to cached objects that a reader got since a mark. Mark 0 means
// since the beginning. It puts the original object back into a cache of the Set, and returns each
// change only once.
func (s *Set) Mutations(mark int) []Mutation {
	s.store.Lock()
	defer s.store.Unlock()
	var found []Mutation
	seen := map[*item]bool{}
	for _, it := range slices.AppendSeq(slices.Clone(s.handed[mark:]), maps.Values(s.others)) {
		if seen[it] || reflect.DeepEqual(it.pristine, it.object) || equality.Semantic.DeepEqual(it.pristine, it.object) { // reflect.DeepEqual is faster, so it is tried first
			continue
		}
		seen[it] = true
		found = append(found, it.mutation())
		if it.inf != nil {
			it.inf.restoreLocked(it)
		} else {
			it.pristine = it.object.DeepCopyObject()
		}
	}
	return found
}

func (it *item) mutation() Mutation {
	m := Mutation{Namespace: kinds.Metadata(it.pristine).GetNamespace(), Name: kinds.Metadata(it.pristine).GetName()}
	switch {
	case it.inf != nil && it.inf.kind != nil:
		m.Kind = it.inf.kind.GVK
	case it.pristine.GetObjectKind().GroupVersionKind().Kind != "":
		m.Kind = it.pristine.GetObjectKind().GroupVersionKind()
	default:
		m.Kind.Kind = reflect.TypeOf(it.object).Elem().Name()
	}
	every := cmp.Exporter(func(reflect.Type) bool { return true })
	m.Diff = cmp.Diff(it.pristine, it.object, every)
	return m
}

// restoreLocked puts the original of a changed item back into the cache. A plugin that has a
// pointer to the changed object keeps that object: a further change is another Mutation.
func (inf *Informer) restoreLocked(it *item) {
	pristine := it.pristine
	it.pristine = it.object.DeepCopyObject()
	if inf.items[it.key] != it {
		return
	}
	fresh := &item{inf: inf, key: it.key, object: pristine.DeepCopyObject(), pristine: pristine}
	delete(inf.byObject, it.object)
	inf.items[it.key], inf.byObject[fresh.object], inf.sorted = fresh, fresh, nil
	inf.reindexLocked()
}

// reindexLocked fills the real indexer again, because it still has a changed object under the old
// index values.
func (inf *Informer) reindexLocked() {
	all := make([]any, 0, len(inf.items))
	for _, it := range inf.sortedLocked() {
		all = append(all, it.object)
	}
	_ = inf.index.Replace(all, "")
}
