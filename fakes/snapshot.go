package fakes

import (
	"slices"

	"github.com/admissiontest/admissiontest/fakes/internal/informer"
	"k8s.io/client-go/tools/cache"
)

// Snapshot marks a moment: its methods return what has happened since then. Make a Snapshot with
// World.Snapshot. For the zero value, the methods return nothing.
type Snapshot struct {
	w    *World
	mark int // of the informers
	call int // index in World.calls
}

// Mutation is a change to a cached object. All readers of a cache share its objects, so a plugin
// must not change them. See https://pkg.go.dev/k8s.io/client-go/tools/cache#MutationDetector. Its method String returns
// "v1 Namespace default: " and Diff. The fields are:
//
//	Kind, Namespace, Name  identify the object
//	Diff                   the change as go-cmp prints it: - before, + after
type Mutation = informer.Mutation

// FollowCaches makes Snapshots, and Mutations, also see changes to objects in caches that a plugin made
// itself, with informers of client-go. New and Build of package harness call it for the informers and
// listers in the fields of the plugin.
func (w *World) FollowCaches(caches ...cache.Store) { w.informers.Follow(caches...) }

// Snapshot returns a Snapshot of this moment. It copies no objects, except from caches of FollowCaches, so it
// costs little.
func (w *World) Snapshot() *Snapshot {
	w.store.Lock()
	defer w.store.Unlock()
	return &Snapshot{w: w, mark: w.informers.MarkLocked(), call: len(w.calls)}
}

// Calls returns the calls that clients have made since the Snapshot, without calls of informers: see
// Call.
func (s *Snapshot) Calls() Calls {
	if s.w == nil {
		return nil
	}
	return slices.DeleteFunc(s.w.callsFrom(s.call), func(call Call) bool { return call.Informer })
}

// Mutations returns the changes to cached objects that a reader got since the Snapshot, also to
// objects that are no longer in a cache. It puts the original object back into the cache, so it
// returns each change only once. It also returns the changes to objects in caches of FollowCaches.
func (s *Snapshot) Mutations() []Mutation {
	if s.w == nil {
		return nil
	}
	return s.w.informers.Mutations(s.mark)
}

// Read reports whether the caches have returned any object since the Snapshot.
func (s *Snapshot) Read() bool {
	if s.w == nil {
		return false
	}
	return s.w.informers.Read(s.mark)
}

// Mutations returns the changes to all cached objects that a reader ever got, except changes that
// Mutations has returned before.
func (w *World) Mutations() []Mutation { return w.informers.Mutations(0) }
