package fakes

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one kind of object and its resource.
type kind struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
	typ        reflect.Type    // of the struct; nil for unstructured objects
	scheme     *runtime.Scheme // that knows typ
	review     bool            // a response to its creation, never stored
}

// kinds finds kinds by type, by kind and by resource.
type kinds struct {
	schemes  []*runtime.Scheme // the first is that of Kubernetes' clients
	mappings []meta.RESTMapping

	mu        sync.Mutex
	known     map[schema.GroupVersionKind]*kind
	resources map[schema.GroupVersion]map[string]*kind
}

func newKinds(schemes []*runtime.Scheme, mappings []meta.RESTMapping) (*kinds, error) {
	ks := &kinds{known: map[schema.GroupVersionKind]*kind{}, resources: map[schema.GroupVersion]map[string]*kind{}}
	var wrong []error
	for _, scheme := range schemes {
		if scheme == nil {
			wrong = append(wrong, errors.New("WithScheme: the scheme is nil: give the one your types are registered in"))
			continue
		}
		ks.schemes = append(ks.schemes, scheme)
	}
	for _, m := range mappings {
		if m.Resource.Resource == "" || m.Resource.Version == "" || m.GroupVersionKind.Kind == "" || m.GroupVersionKind.Version == "" {
			wrong = append(wrong, fmt.Errorf("WithMappings: mapping of %q to %q is incomplete: it needs the version and name of the resource and of the kind", m.GroupVersionKind, m.Resource))
			continue
		}
		ks.mappings = append(ks.mappings, m)
	}
	return ks, errors.Join(wrong...)
}

// byObject finds the kind of an object.
func (ks *kinds) byObject(object runtime.Object) (*kind, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		gvk := u.GroupVersionKind()
		if gvk.Kind == "" || gvk.Version == "" {
			return nil, fmt.Errorf("unstructured object %q has no apiVersion or kind: set both", u.GetName())
		}
		return ks.byKind(gvk)
	}
	for _, scheme := range ks.schemes {
		if gvks, _, err := scheme.ObjectKinds(object); err == nil {
			return ks.byKind(gvks[0])
		}
	}
	return nil, fmt.Errorf("no scheme knows type %T: add one that does with fakes.WithScheme", object)
}

// byCacheID finds the kind of the objects of a cache. It is nil for a type that is in no scheme.
func (ks *kinds) byCacheID(id any) *kind {
	if gvk, ok := id.(schema.GroupVersionKind); ok {
		if k, err := ks.byKind(gvk); err == nil {
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
	if k, err := ks.byObject(object); err == nil {
		return k
	}
	return nil
}

// byKind finds a kind by its name.
func (ks *kinds) byKind(gvk schema.GroupVersionKind) (*kind, error) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.byKindLocked(gvk)
}

func (ks *kinds) byKindLocked(gvk schema.GroupVersionKind) (*kind, error) {
	if k := ks.known[gvk]; k != nil {
		return k, nil
	}
	k := &kind{gvk: gvk, namespaced: !clusterScoped(gvk.GroupKind()), review: isReview(gvk)}
	k.gvr, _ = meta.UnsafeGuessKindToResource(gvk)
	mapped := false
	for _, m := range ks.mappings {
		if m.GroupVersionKind == gvk {
			mapped = true
			k.gvr, k.namespaced = m.Resource, m.Scope == nil || m.Scope.Name() == meta.RESTScopeNameNamespace
		}
	}
	for _, scheme := range ks.schemes {
		if typ, ok := scheme.AllKnownTypes()[gvk]; ok {
			k.typ, k.scheme = typ, scheme
			break
		}
	}
	if k.typ == nil && !mapped {
		return nil, fmt.Errorf("no scheme knows kind %s: add one that does with fakes.WithScheme, or its resource with fakes.WithMappings", gvk)
	}
	if k.typ != nil && !hasMetadata(k.typ) {
		return nil, fmt.Errorf("kind %s (%s) has no metadata: a World holds objects with a name", gvk, k.typ)
	}
	ks.known[gvk] = k
	return k, nil
}

// byResource finds the kind of a resource, or nil.
func (ks *kinds) byResource(gvr schema.GroupVersionResource) *kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.servedLocked(gvr.GroupVersion())[gvr.Resource]
}

// served returns the kinds of a group and version, by resource.
func (ks *kinds) served(gv schema.GroupVersion) map[string]*kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.servedLocked(gv)
}

func (ks *kinds) servedLocked(gv schema.GroupVersion) map[string]*kind {
	if served := ks.resources[gv]; served != nil {
		return served
	}
	served := map[string]*kind{}
	for i, scheme := range ks.schemes {
		types := scheme.KnownTypes(gv)
		for name := range types {
			if !isResource(gv.WithKind(name), types, i == 0) {
				continue
			}
			if k, err := ks.byKindLocked(gv.WithKind(name)); err == nil {
				served[k.gvr.Resource] = k
			}
		}
	}
	for _, m := range ks.mappings {
		if m.Resource.GroupVersion() == gv {
			if k, err := ks.byKindLocked(m.GroupVersionKind); err == nil {
				served[m.Resource.Resource] = k
			}
		}
	}
	ks.resources[gv] = served
	return served
}

// versions returns all groups and versions, the preferred version of each group first.
func (ks *kinds) versions() []schema.GroupVersion {
	var all []schema.GroupVersion
	seen := map[schema.GroupVersion]bool{}
	add := func(gv schema.GroupVersion) {
		if !seen[gv] && gv.Version != runtime.APIVersionInternal && gv.Version != "" {
			seen[gv] = true
			all = append(all, gv)
		}
	}
	for _, scheme := range ks.schemes {
		for _, gv := range scheme.PrioritizedVersionsAllGroups() {
			add(gv)
		}
	}
	for _, m := range ks.mappings {
		add(m.Resource.GroupVersion())
	}
	sortVersions(all)
	return all
}

// isResource reports whether a kind of a scheme has its own resource, and is not only a
// subresource. Kubernetes' kinds that do have a list type, or are reviews.
func isResource(gvk schema.GroupVersionKind, types map[string]reflect.Type, builtin bool) bool {
	if !hasMetadata(types[gvk.Kind]) {
		return false
	}
	_, listed := types[gvk.Kind+"List"]
	return listed || !builtin || isReview(gvk)
}

// isReview reports whether objects of a kind are reviews, which are never stored.
func isReview(gvk schema.GroupVersionKind) bool {
	switch gvk.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "imagepolicy.k8s.io":
		return strings.HasSuffix(gvk.Kind, "Review")
	case "":
		return gvk.Kind == "Binding"
	default:
		return false
	}
}

func hasMetadata(typ reflect.Type) bool {
	// Kubernetes' types have it in the second field. This is faster for most types.
	if typ.Kind() == reflect.Struct && typ.NumField() > 1 && typ.Field(1).Type == reflect.TypeFor[metav1.ObjectMeta]() {
		return true
	}
	return reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.ObjectMetaAccessor]()) &&
		reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.Object]())
}

// cacheID returns the key of World.caches for an object: its type, or the kind of an
// unstructured object.
func cacheID(object runtime.Object) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.GroupVersionKind()
	}
	return reflect.TypeOf(object)
}

func (k *kind) cacheID() any {
	if k.typ == nil {
		return k.gvk
	}
	return reflect.PointerTo(k.typ)
}

// empty returns a new object of the kind.
func (k *kind) empty() runtime.Object {
	if k.typ == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.gvk)
		return u
	}
	object, _ := reflect.New(k.typ).Interface().(runtime.Object)
	return object
}

func errNil(i, n int) error {
	return fmt.Errorf("object %d of %d is nil: expected a pointer to an object", i+1, n)
}
