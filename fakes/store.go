package fakes

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admissiontest/admissiontest/internal/object"
)

// store has the stored objects. It never changes an object: an update replaces it. It is
// guarded by the World's lock.
type store struct {
	objects  map[schema.GroupVersionResource]map[key]runtime.Object
	revision uint64
	serial   uint64 // of UIDs and generated names
	history  []change
	changed  signal
}

type key struct{ namespace, name string }

// change is one change of the store, for watches.
type change struct {
	revision uint64
	kind     *kind
	typ      watch.EventType
	object   runtime.Object // for a deletion: its last state, with the revision of the deletion
	old      runtime.Object
}

func newStore() store {
	return store{objects: map[schema.GroupVersionResource]map[key]runtime.Object{}, revision: 1}
}

func (s *store) version() string { return strconv.FormatUint(s.revision, 10) }

func (s *store) get(k *kind, at key) runtime.Object { return s.objects[k.gvr][at] }

// list returns the objects of a kind, sorted: those in a namespace, or all if it is empty.
func (s *store) list(k *kind, namespace string) []runtime.Object {
	return sorted(s.objects[k.gvr], namespace)
}

// listAt is list at an earlier revision.
func (s *store) listAt(k *kind, namespace string, revision uint64) []runtime.Object {
	since := s.history[s.after(revision):]
	if len(since) == 0 {
		return s.list(k, namespace)
	}
	all := maps.Clone(s.objects[k.gvr])
	for _, c := range slices.Backward(since) {
		at := key{metadata(c.object).GetNamespace(), metadata(c.object).GetName()}
		switch {
		case c.kind != k:
		case c.old == nil:
			delete(all, at)
		default:
			all[at] = c.old
		}
	}
	return sorted(all, namespace)
}

func sorted(all map[key]runtime.Object, namespace string) []runtime.Object {
	keys := make([]key, 0, len(all))
	for at := range all {
		if namespace == "" || at.namespace == namespace {
			keys = append(keys, at)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := strings.Compare(a.namespace, b.namespace); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	objects := make([]runtime.Object, len(keys))
	for i, at := range keys {
		objects[i] = all[at]
	}
	return objects
}

// set stores an object. The caller must not change it afterwards.
func (s *store) set(k *kind, object runtime.Object) change {
	accessor := metadata(object)
	at := key{accessor.GetNamespace(), accessor.GetName()}
	old := s.get(k, at)
	if s.objects[k.gvr] == nil {
		s.objects[k.gvr] = map[key]runtime.Object{}
	}
	s.fill(accessor, old)
	s.revision++
	accessor.SetResourceVersion(s.version())
	s.objects[k.gvr][at] = object
	typ := watch.Added
	if old != nil {
		typ = watch.Modified
	}
	return s.note(change{revision: s.revision, kind: k, typ: typ, object: object, old: old})
}

// fill gives an object a UID.
func (s *store) fill(accessor metav1.Object, old runtime.Object) {
	if accessor.GetUID() != "" {
		return
	}
	if old != nil {
		accessor.SetUID(metadata(old).GetUID())
		return
	}
	s.serial++
	accessor.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.serial)))
}

func (s *store) remove(k *kind, at key) change {
	old := s.get(k, at)
	delete(s.objects[k.gvr], at)
	s.revision++
	last := old.DeepCopyObject()
	metadata(last).SetResourceVersion(s.version())
	return s.note(change{revision: s.revision, kind: k, typ: watch.Deleted, object: last, old: old})
}

func (s *store) note(c change) change {
	s.history = append(s.history, c)
	s.changed.raise()
	return c
}

// after returns the index in the history of the first change after a revision.
func (s *store) after(revision uint64) int {
	return sort.Search(len(s.history), func(i int) bool { return s.history[i].revision > revision })
}

// generateName returns a name that no object of the kind and namespace has.
func (s *store) generateName(k *kind, namespace, base string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	for {
		s.serial++
		suffix := make([]byte, 5)
		for i, n := len(suffix)-1, s.serial; i >= 0; i, n = i-1, n/uint64(len(letters)) {
			suffix[i] = letters[n%uint64(len(letters))]
		}
		if name := base + string(suffix); s.get(k, key{namespace, name}) == nil {
			return name
		}
	}
}

type prepared struct {
	kind   *kind
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
	k, err := w.kinds.byObject(object)
	if err != nil {
		return prepared{}, err
	}
	if k.review {
		return prepared{}, fmt.Errorf("kind %s is never stored, because it is a review: leave it out", k.gvk)
	}
	object = object.DeepCopyObject()
	if u, ok := object.(*unstructured.Unstructured); ok && k.typ != nil {
		object = k.empty()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			return prepared{}, fmt.Errorf("convert unstructured %s %q to %T: %w", k.gvk, u.GetName(), object, err)
		}
	}
	if k.typ != nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	accessor := metadata(object)
	switch {
	case accessor.GetName() == "" && accessor.GetGenerateName() == "":
		return prepared{}, fmt.Errorf("a %s has no name: give it metadata.name", k.gvk.Kind)
	case !k.namespaced && accessor.GetNamespace() != "":
		return prepared{}, fmt.Errorf("%s %q has namespace %q and its kind is cluster-scoped: leave the namespace out", k.gvk.Kind, accessor.GetName(), accessor.GetNamespace())
	}
	if err := w.checkKey(object); err != nil {
		return prepared{}, err
	}
	return prepared{k, object}, nil
}

func (w *World) putLocked(k *kind, object runtime.Object) error {
	accessor := metadata(object)
	if accessor.GetName() == "" {
		accessor.SetName(w.store.generateName(k, accessor.GetNamespace(), accessor.GetGenerateName()))
	}
	w.spreadLocked(w.store.set(k, object))
	return nil
}

// createLocked, updateLocked and deleteLocked carry out the request of a client. With dry they
// return the object that they would store, and store nothing.
func (w *World) createLocked(k *kind, object runtime.Object, dry bool) (runtime.Object, error) {
	accessor := metadata(object)
	if accessor.GetName() == "" {
		accessor.SetName(w.store.generateName(k, accessor.GetNamespace(), accessor.GetGenerateName()))
	}
	if w.store.get(k, key{accessor.GetNamespace(), accessor.GetName()}) != nil {
		return nil, apierrors.NewAlreadyExists(k.gvr.GroupResource(), accessor.GetName())
	}
	accessor.SetUID("")
	accessor.SetDeletionTimestamp(nil)
	accessor.SetDeletionGracePeriodSeconds(nil)
	if dry {
		w.store.fill(accessor, nil)
		accessor.SetResourceVersion("")
		return object, nil
	}
	w.spreadLocked(w.store.set(k, object))
	return object, nil
}

func (w *World) updateLocked(k *kind, object runtime.Object, dry bool) (runtime.Object, error) {
	accessor := metadata(object)
	old := w.store.get(k, key{accessor.GetNamespace(), accessor.GetName()})
	if old == nil {
		return nil, apierrors.NewNotFound(k.gvr.GroupResource(), accessor.GetName())
	}
	if err := fresh(k, metadata(old), accessor.GetResourceVersion(), accessor.GetUID()); err != nil {
		return nil, err
	}
	if err := keepDeletion(k, metadata(old), accessor); err != nil {
		return nil, err
	}
	w.store.fill(accessor, old)
	accessor.SetResourceVersion(metadata(old).GetResourceVersion())
	switch {
	case dry, equality.Semantic.DeepEqual(old, object): // as on a server, a write that changes nothing is none
	case accessor.GetDeletionTimestamp() != nil && !hasFinalizers(object):
		w.spreadLocked(w.store.remove(k, key{accessor.GetNamespace(), accessor.GetName()}))
	default:
		w.spreadLocked(w.store.set(k, object))
	}
	return object, nil
}

// fresh returns a conflict if a write names another resource version or UID than the stored.
func fresh(k *kind, stored metav1.Object, version string, uid types.UID) error {
	if version != "" && version != stored.GetResourceVersion() {
		return apierrors.NewConflict(k.gvr.GroupResource(), stored.GetName(),
			fmt.Errorf("the object has been modified: its resource version is %s, the request has %s", stored.GetResourceVersion(), version))
	}
	if uid != "" && uid != stored.GetUID() {
		return apierrors.NewConflict(k.gvr.GroupResource(), stored.GetName(),
			fmt.Errorf("precondition failed: the object has UID %s, the request has %s", stored.GetUID(), uid))
	}
	return nil
}

// metadata returns the metadata of an object whose kind is known, and which therefore has some.
func metadata(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}
