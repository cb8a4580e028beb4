package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Store has the objects of a World. It calls OnChange for each change, before the lock is released: so the caches of informers, which
// it updates, never differ from the store. It never changes an object: an update replaces the object. Make a
// Store with NewStore. Hold the lock during a call of any other method. The lock also guards the rest of
// the World.
type Store struct {
	sync.Mutex

	// OnChange is called for each change, with the lock held. Nil means no function.
	OnChange func(Change)
	// Changed is raised after each change.
	Changed Signal
	// Seed decides the order of lists. Nil means that they are sorted by namespace and name.
	Seed *uint64

	objects  map[schema.GroupVersionResource]map[Key]runtime.Object
	revision uint64
	serial   uint64 // of UIDs and generated names
	history  []Change
}

// Key identifies an object among the objects of its kind. The namespace of a cluster-scoped object
// is empty.
type Key struct{ Namespace, Name string }

// KeyOf returns the Key of an object.
func KeyOf(object runtime.Object) Key {
	accessor := kinds.Metadata(object)
	return Key{accessor.GetNamespace(), accessor.GetName()}
}

// Compare compares two keys, first by namespace, then by name.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Name, other.Name))
}

// Change is one change of the store.
type Change struct {
	// Revision is the revision of the store after the change.
	Revision uint64
	Kind     *kinds.Kind
	// Type is watch.Added, watch.Modified or watch.Deleted.
	Type watch.EventType
	// Object is the new object. For a deletion it is the last state of the object, with the
	// revision of the deletion as resource version.
	Object runtime.Object
	// Old is the object before the change. Nil for a new object.
	Old runtime.Object
}

// NewStore returns an empty Store.
func NewStore() *Store {
	return &Store{objects: map[schema.GroupVersionResource]map[Key]runtime.Object{}, revision: 1}
}

// Revision returns the number of the last change. For an empty Store it is 1.
func (s *Store) Revision() uint64 { return s.revision }

// Version returns Revision as a resource version.
func (s *Store) Version() string { return strconv.FormatUint(s.revision, 10) }

// Shuffle swaps n sorted elements until they are in the order of the Seed.
func (s *Store) Shuffle(n int, swap func(i, j int)) {
	if s.Seed != nil {
		rand.New(rand.NewPCG(*s.Seed, uint64(n))).Shuffle(n, swap) //nolint:gosec // a test can repeat the order
	}
}

// Get returns an object, or nil.
func (s *Store) Get(k *kinds.Kind, at Key) runtime.Object { return s.objects[k.GVR][at] }

// All returns the objects of all kinds, sorted by resource, namespace and name.
func (s *Store) All() []runtime.Object {
	resources := slices.SortedFunc(maps.Keys(s.objects), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
	var all []runtime.Object
	for _, resource := range resources {
		all = append(all, sorted(s.objects[resource], "")...)
	}
	return all
}

// List returns the objects of a kind in a namespace, sorted by namespace and name. An empty
// namespace means all namespaces.
func (s *Store) List(k *kinds.Kind, namespace string) []runtime.Object {
	return sorted(s.objects[k.GVR], namespace)
}

func sorted(all map[Key]runtime.Object, namespace string) []runtime.Object {
	keys := make([]Key, 0, len(all))
	for at := range all {
		if namespace == "" || at.Namespace == namespace {
			keys = append(keys, at)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	objects := make([]runtime.Object, len(keys))
	for i, at := range keys {
		objects[i] = all[at]
	}
	return objects
}

// Set stores an object and sets its resource version, and its UID if it has none. The caller must
// not change the object afterwards.
func (s *Store) Set(k *kinds.Kind, object runtime.Object) {
	at := KeyOf(object)
	old := s.Get(k, at)
	if s.objects[k.GVR] == nil {
		s.objects[k.GVR] = map[Key]runtime.Object{}
	}
	s.SetUID(object, old)
	s.revision++
	kinds.Metadata(object).SetResourceVersion(s.Version())
	s.objects[k.GVR][at] = object
	typ := watch.Added
	if old != nil {
		typ = watch.Modified
	}
	s.note(Change{Revision: s.revision, Kind: k, Type: typ, Object: object, Old: old})
}

// SetUID sets the UID of an object that has none: to the UID of old, the object that it replaces,
// or to a new UID if old is nil.
func (s *Store) SetUID(object, old runtime.Object) {
	accessor := kinds.Metadata(object)
	if accessor.GetUID() != "" {
		return
	}
	if old != nil {
		accessor.SetUID(kinds.Metadata(old).GetUID())
		return
	}
	s.serial++
	accessor.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.serial)))
}

// Remove removes an object, which must be there.
func (s *Store) Remove(k *kinds.Kind, at Key) {
	old := s.Get(k, at)
	delete(s.objects[k.GVR], at)
	s.revision++
	last := old.DeepCopyObject()
	kinds.Metadata(last).SetResourceVersion(s.Version())
	s.note(Change{Revision: s.revision, Kind: k, Type: watch.Deleted, Object: last, Old: old})
}

func (s *Store) note(c Change) {
	s.history = append(s.history, c)
	s.Changed.Raise()
	if s.OnChange != nil {
		s.OnChange(c)
	}
}

// History returns all changes. The caller must not change the slice.
func (s *Store) History() []Change { return s.history }

// After returns the index in the history of the first change after a revision.
func (s *Store) After(revision uint64) int {
	return sort.Search(len(s.history), func(i int) bool { return s.history[i].Revision > revision })
}

// GenerateName returns a name that no object of the kind and namespace has.
func (s *Store) GenerateName(k *kinds.Kind, namespace, base string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	for {
		s.serial++
		suffix := make([]byte, 5)
		for i, n := len(suffix)-1, s.serial; i >= 0; i, n = i-1, n/uint64(len(letters)) {
			suffix[i] = letters[n%uint64(len(letters))]
		}
		if name := base + string(suffix); s.Get(k, Key{namespace, name}) == nil {
			return name
		}
	}
}
