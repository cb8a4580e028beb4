// Package kinds knows which kinds there are: their resources, scopes, subresources and Go types, and the fields of their objects.
//
// A [Catalogue] has the resources that an API server serves: what its discovery returns, or [BuiltIn] without a server, and
// CustomResourceDefinitions. A [Registry] has the kinds of schemes of Go types, for a World. It finds a [Kind] by an
// object, by its name or by its resource, and makes the RESTMapper.
//
// Which fields there are is known of Go types ([Fields], [MissingInKind], [MissingInType]), as in the version of k8s.io/api in this build,
// and of the OpenAPI document of an API server ([MissingInDocument], [SchemaAt]). An API server of another version can have other
// fields: ask it before a field counts as misspelt. A path has strings for fields and ints for items of lists. Fields of mappings with
// any key, and of values whose fields are not known, exist.
package kinds

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one kind of object and its resource. A Registry returns the same *Kind for the same kind,
// so pointers can be compared with ==.
type Kind struct {
	GVK        schema.GroupVersionKind
	GVR        schema.GroupVersionResource
	Namespaced bool
	// Type is the struct type of the objects. Nil for unstructured objects.
	Type reflect.Type
	// Scheme is the scheme that knows Type. Nil for unstructured objects.
	Scheme *runtime.Scheme
	// Review is true for a kind that is the response to its creation, and is never stored.
	Review bool
}

// Registry finds kinds by object, by name and by resource. Make it with New. Its methods are
// safe for concurrent use.
type Registry struct {
	schemes  []*runtime.Scheme // the first is that of Kubernetes' clients
	mappings []meta.RESTMapping

	mu        sync.Mutex
	known     map[schema.GroupVersionKind]*Kind
	resources map[schema.GroupVersion]map[string]*Kind
}

// New returns a Registry of the kinds in the schemes and mappings. The first scheme must be that of
// Kubernetes' own clients. The error names each nil scheme and each incomplete mapping; the
// Registry then has the other ones.
func New(schemes []*runtime.Scheme, mappings []meta.RESTMapping) (*Registry, error) {
	r := &Registry{known: map[schema.GroupVersionKind]*Kind{}, resources: map[schema.GroupVersion]map[string]*Kind{}}
	var wrong []error
	for _, scheme := range schemes {
		if scheme == nil {
			wrong = append(wrong, errors.New("WithScheme: the scheme is nil: give the one your types are registered in"))
			continue
		}
		r.schemes = append(r.schemes, scheme)
	}
	for _, m := range mappings {
		if problem := r.lacks(m); problem != "" {
			wrong = append(wrong, fmt.Errorf("WithMappings: mapping of kind %q to resource %q: %s", m.GroupVersionKind, m.Resource, problem))
			continue
		}
		r.mappings = append(r.mappings, m)
	}
	return r, errors.Join(wrong...)
}

// lacks returns what a RESTMapping lacks, or "".
func (r *Registry) lacks(m meta.RESTMapping) string {
	kind, resource := m.GroupVersionKind, m.Resource
	switch {
	case kind.Kind == "" || kind.Version == "" || resource.Resource == "" || kind.Group == "" && !r.Builtin().Recognizes(kind):
		return "group, version or name is not set: set all of both; the name of the resource is the plural"
	case kind.GroupVersion() != resource.GroupVersion():
		return "the kind and its resource must have the same group and version"
	case m.Scope == nil:
		return "Scope is not set: set it to meta.RESTScopeNamespace, or to meta.RESTScopeRoot for a cluster-scoped resource"
	}
	return ""
}

// Schemes returns the schemes, first that of Kubernetes' own clients. The caller may change the
// slice.
func (r *Registry) Schemes() []*runtime.Scheme { return slices.Clone(r.schemes) }

// Builtin returns the scheme of Kubernetes' own clients.
func (r *Registry) Builtin() *runtime.Scheme { return r.schemes[0] }

// ByObject finds the kind of an object. It returns an error if no scheme or mapping knows it.
func (r *Registry) ByObject(object runtime.Object) (*Kind, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		gvk := u.GroupVersionKind()
		if gvk.Kind == "" || gvk.Version == "" {
			return nil, fmt.Errorf("unstructured object %q has no apiVersion or kind: set both", u.GetName())
		}
		return r.ByKind(gvk)
	}
	for _, scheme := range r.schemes {
		if gvks, _, err := scheme.ObjectKinds(object); err == nil {
			return r.ByKind(gvks[0])
		}
	}
	return nil, fmt.Errorf("no scheme knows type %T: add one that does with fakes.WithScheme", object)
}

// KindOf returns the name of an object's kind, or an empty one if it is unknown.
func (r *Registry) KindOf(object runtime.Object) schema.GroupVersionKind {
	for _, scheme := range r.schemes {
		if gvks, _, err := scheme.ObjectKinds(object); err == nil {
			return gvks[0]
		}
	}
	return object.GetObjectKind().GroupVersionKind()
}

// NewObject returns a new object of a kind, which is unstructured if no scheme knows the kind.
func (r *Registry) NewObject(gvk schema.GroupVersionKind) runtime.Object {
	for _, scheme := range r.schemes {
		if object, err := scheme.New(gvk); err == nil {
			return object
		}
	}
	return &unstructured.Unstructured{}
}

// ByKind finds a kind by its name. It returns an error if no scheme or mapping knows it, and for a
// kind whose objects have no metadata.
func (r *Registry) ByKind(gvk schema.GroupVersionKind) (*Kind, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKindLocked(gvk)
}

func (r *Registry) byKindLocked(gvk schema.GroupVersionKind) (*Kind, error) {
	if k := r.known[gvk]; k != nil {
		return k, nil
	}
	k := &Kind{GVK: gvk, Namespaced: !IsCluster(gvk.GroupKind()), Review: isReview(gvk)}
	k.GVR, _ = meta.UnsafeGuessKindToResource(gvk)
	mapped := false
	for _, m := range r.mappings {
		if m.GroupVersionKind == gvk {
			mapped = true
			k.GVR, k.Namespaced = m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace
		}
	}
	for _, scheme := range r.schemes {
		if typ, ok := scheme.AllKnownTypes()[gvk]; ok {
			k.Type, k.Scheme = typ, scheme
			break
		}
	}
	if k.Type == nil && !mapped {
		return nil, fmt.Errorf("no scheme knows kind %s: add one that does with fakes.WithScheme, or its resource with fakes.WithMappings", gvk)
	}
	if k.Type != nil && !HasMetadata(k.Type) {
		return nil, fmt.Errorf("kind %s (%s) has no metadata: a World holds objects with a name", gvk, k.Type)
	}
	r.known[gvk] = k
	return k, nil
}

// ByResource finds the kind of a resource, or nil.
func (r *Registry) ByResource(gvr schema.GroupVersionResource) *Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servedLocked(gvr.GroupVersion())[gvr.Resource]
}

// Served returns the kinds of a group and version, by resource.
func (r *Registry) Served(gv schema.GroupVersion) map[string]*Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servedLocked(gv)
}

func (r *Registry) servedLocked(gv schema.GroupVersion) map[string]*Kind {
	if served := r.resources[gv]; served != nil {
		return served
	}
	served := map[string]*Kind{}
	for i, scheme := range r.schemes {
		types := scheme.KnownTypes(gv)
		for name := range types {
			if !isResource(gv.WithKind(name), types, i == 0) {
				continue
			}
			if k, err := r.byKindLocked(gv.WithKind(name)); err == nil {
				served[k.GVR.Resource] = k
			}
		}
	}
	for _, m := range r.mappings {
		if m.Resource.GroupVersion() == gv {
			if k, err := r.byKindLocked(m.GroupVersionKind); err == nil {
				served[m.Resource.Resource] = k
			}
		}
	}
	r.resources[gv] = served
	return served
}

// Discovery returns what an API server with these kinds returns for a group and version, sorted.
func (r *Registry) Discovery(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for resource, k := range r.Served(gv) {
		verbs := metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
		if k.Review {
			verbs = metav1.Verbs{"create"}
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource, SingularName: strings.ToLower(k.GVK.Kind), Namespaced: k.Namespaced, Kind: k.GVK.Kind, Verbs: verbs,
		})
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Versions returns all groups and versions, the preferred version of each group first.
func (r *Registry) Versions() []schema.GroupVersion {
	var all []schema.GroupVersion
	seen := map[schema.GroupVersion]bool{}
	add := func(gv schema.GroupVersion) {
		if !seen[gv] && gv.Version != runtime.APIVersionInternal && gv.Version != "" {
			seen[gv] = true
			all = append(all, gv)
		}
	}
	for _, scheme := range r.schemes {
		for _, gv := range scheme.PrioritizedVersionsAllGroups() {
			add(gv)
		}
	}
	for _, m := range r.mappings {
		add(m.Resource.GroupVersion())
	}
	slices.SortStableFunc(all, func(a, b schema.GroupVersion) int { return strings.Compare(a.Group, b.Group) })
	return all
}

// isResource reports whether a kind of a scheme has its own resource, and is not only the kind of a
// subresource. A kind of Kubernetes has its own resource if it has a list type or is a review.
func isResource(gvk schema.GroupVersionKind, types map[string]reflect.Type, builtin bool) bool {
	if !HasMetadata(types[gvk.Kind]) {
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

// HasMetadata reports whether a struct has the metadata of an object.
func HasMetadata(typ reflect.Type) bool {
	// In most types of Kubernetes, the second field is the metadata: this check is faster.
	if typ.Kind() == reflect.Struct && typ.NumField() > 1 && typ.Field(1).Type == reflect.TypeFor[metav1.ObjectMeta]() {
		return true
	}
	return reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.ObjectMetaAccessor]()) &&
		reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.Object]())
}

// Empty returns a new object of the kind.
func (k *Kind) Empty() runtime.Object {
	if k.Type == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.GVK)
		return u
	}
	object, _ := reflect.New(k.Type).Interface().(runtime.Object)
	return object
}

// Metadata returns the metadata of an object of a known kind; all known kinds have metadata. For
// another object it returns empty metadata.
func Metadata(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}
