package fakes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot marks a moment, from which Calls and Mutations count. World.Snapshot returns one.
// The zero value has none of both.
type Snapshot struct {
	w    *World
	mark int // of the informers
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
	w.store.Lock()
	defer w.store.Unlock()
	return &Snapshot{w: w, mark: w.informers.MarkLocked(), call: len(w.calls)}
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
	return s.w.mutations(s.mark)
}

// Read reports whether the caches have returned any object since the Snapshot.
func (s *Snapshot) Read() bool {
	if s.w == nil {
		return false
	}
	return s.w.informers.Read(s.mark)
}

// Mutations returns the changes to any object that the caches have ever returned, without
// those that a call of Mutations returned before.
func (w *World) Mutations() []Mutation { return w.mutations(0) }

func (w *World) mutations(mark int) []Mutation {
	var found []Mutation
	for _, m := range w.informers.Mutations(mark) {
		found = append(found, Mutation(m))
	}
	return found
}
