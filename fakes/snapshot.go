package fakes

import (
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot marks a moment, from which Calls and Mutations count. World.Snapshot returns one.
// The zero value has none of both.
type Snapshot struct {
	w    *World
	from int // index in World.handed
	call int // index in World.calls
}

// Mutation is a change to an object of a cache. Readers of a cache must not change its
// objects, because they share them.
// See https://pkg.go.dev/k8s.io/client-go/tools/cache#MutationDetector
type Mutation struct {
	// Kind, Namespace and Name are those of the object.
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Diff is the change in the form of go-cmp: - before, + after.
	Diff string
}

// String returns "v1 Namespace default: " and Diff.
func (m Mutation) String() string {
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s: %s", m.Kind.GroupVersion(), m.Kind.Kind, name, m.Diff)
}

// Snapshot returns a mark for Mutations and Calls. It copies nothing.
func (w *World) Snapshot() *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch++
	return &Snapshot{w: w, from: len(w.handed), call: len(w.calls)}
}

// Calls returns the calls that clients have made since the Snapshot.
func (s *Snapshot) Calls() Calls {
	if s.w == nil {
		return nil
	}
	return s.w.callsFrom(s.call)
}

// Mutations returns the changes to objects that the caches have returned since the Snapshot,
// also to objects that are no longer in a cache. It returns each change once, and puts the
// original back into the cache.
func (s *Snapshot) Mutations() []Mutation {
	if s.w == nil {
		return nil
	}
	return s.w.mutations(s.from)
}

// Read reports whether the caches have returned any object since the Snapshot.
func (s *Snapshot) Read() bool {
	if s.w == nil {
		return false
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return len(s.w.handed) > s.from
}

// Mutations returns the changes to any object that the caches have ever returned, without
// those that a call of Mutations returned before.
func (w *World) Mutations() []Mutation { return w.mutations(0) }

func (w *World) mutations(from int) []Mutation {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []Mutation
	seen := map[*item]bool{}
	for _, it := range w.handed[from:] {
		if seen[it] || reflect.DeepEqual(it.pristine, it.object) || equality.Semantic.DeepEqual(it.pristine, it.object) { // the quick one first
			continue
		}
		seen[it] = true
		found = append(found, it.mutation())
		it.inf.restoreLocked(it)
	}
	return found
}

func (it *item) mutation() Mutation {
	m := Mutation{Namespace: metadata(it.pristine).GetNamespace(), Name: metadata(it.pristine).GetName()}
	if it.inf.kind != nil {
		m.Kind = it.inf.kind.gvk
	} else {
		m.Kind.Kind = reflect.TypeOf(it.object).Elem().Name()
	}
	every := cmp.Exporter(func(reflect.Type) bool { return true })
	m.Diff = cmp.Diff(it.pristine, it.object, every)
	return m
}

// restoreLocked puts the original of a changed item back into the cache. A plugin that holds
// the changed object keeps it: its next change is another Mutation.
func (inf *informer) restoreLocked(it *item) {
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

// reindexLocked fills the real indexer again, which has a changed object under its old index
// values.
func (inf *informer) reindexLocked() {
	all := make([]any, 0, len(inf.items))
	for _, it := range inf.sortedLocked() {
		all = append(all, it.object)
	}
	_ = inf.index.Replace(all, "")
}
