package harness

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is the kind, resource and scope of a Request.
type target struct {
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
	// goType is the type of the request's object. form is the form in which the plugin gets it.
	goType reflect.Type
	form   form
}

// isNamespace reports whether the resource is namespaces. The namespace of a request for a
// Namespace object is the name of that object.
func (a target) isNamespace() bool {
	return a.resource.Group == "" && a.resource.Resource == "namespaces"
}

// resolver finds targets and caches them by type.
type resolver struct {
	schemes []*runtime.Scheme // at least one; the first scheme that has a type is used
	mapper  meta.RESTMapper
	found   sync.Map // targetKey to target
}

// schemeOf returns the first scheme that has the type of an object. If none has the type, it
// returns the first scheme.
func (r *resolver) schemeOf(object runtime.Object) *runtime.Scheme {
	if len(r.schemes) > 1 && !objects.IsNil(object) {
		for _, scheme := range r.schemes {
			if _, _, err := scheme.ObjectKinds(object); err == nil {
				return scheme
			}
		}
	}
	return r.schemes[0]
}

type targetKey struct {
	object, parent typeKey
	version        schema.GroupVersion
	resource       schema.GroupVersionResource
	kind           schema.GroupVersionKind
	namespaced     bool
	unstructured   bool
}

type typeKey struct {
	goType reflect.Type
	kind   schema.GroupVersionKind
}

func typeOf(object runtime.Object) typeKey {
	if objects.IsNil(object) {
		return typeKey{}
	}
	return typeKey{goType: reflect.TypeOf(object), kind: object.GetObjectKind().GroupVersionKind()}
}

// target finds kind, resource and scope of a Request.
func (r *resolver) target(request *framework.Request) (target, error) {
	object, parent := subject(request), request.InProcess.Parent
	key := targetKey{typeOf(object), typeOf(parent), request.InProcess.Version, request.InProcess.Resource, request.Kind, request.Namespace != "", request.InProcess.Unstructured}
	if known, ok := r.found.Load(key); ok {
		return known.(target), nil
	}
	found, err := r.resolve(request, object, parent)
	if err != nil {
		return target{}, err
	}
	r.found.Store(key, found)
	return found, nil
}

// subject returns the object whose type determines the kind of the request: the options of a
// connect, the stored object of a delete, otherwise the body.
func subject(request *framework.Request) runtime.Object {
	if !objects.IsNil(request.Object) {
		return request.Object
	}
	return request.InProcess.OldObject
}

func (r *resolver) resolve(request *framework.Request, object, parent runtime.Object) (target, error) {
	found := target{kind: request.Kind}
	if !objects.IsNil(object) {
		kind, err := r.kind(object, request)
		if err != nil {
			return target{}, err
		}
		found.kind, found.goType = kind, reflect.TypeOf(object)
		found.form = r.form(object, request, kind)
	}
	addressed := found.kind
	switch {
	case !objects.IsNil(parent):
		kind, err := r.kind(parent, request)
		if err != nil {
			return target{}, err
		}
		addressed = kind
	case request.Verb == framework.VerbConnect && !request.Kind.Empty():
		addressed = request.Kind
	}
	mapping, err := r.mapping(addressed)
	if !request.InProcess.Resource.Empty() {
		found.resource = request.InProcess.Resource
		// If the mapper does not have the kind, the namespace of the Request decides whether the
		// resource is namespaced.
		found.namespaced = request.Namespace != ""
		if err == nil {
			found.namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
		}
		return found, nil
	}
	if err != nil {
		return target{}, err
	}
	found.resource, found.namespaced = mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	return found, nil
}

func (r *resolver) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		// The mapper may have the kind in other versions: the resource has the same name.
		var versions []string
		for _, scheme := range r.schemes {
			for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
				versions = append(versions, version.Version)
			}
		}
		if mapping, err = r.mapper.RESTMapping(kind.GroupKind(), versions...); err == nil {
			other := *mapping
			other.Resource = kind.GroupVersion().WithResource(mapping.Resource.Resource)
			return &other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w: add it to the World with fakes.WithMappings, or to the request with WithResource", kind, err)
	}
	return mapping, nil
}

// kind returns the external kind of an object, in the version of the request.
func (r *resolver) kind(object runtime.Object, request *framework.Request) (schema.GroupVersionKind, error) {
	if _, ok := object.(runtime.Unstructured); ok {
		kind := object.GetObjectKind().GroupVersionKind()
		if kind.Kind == "" || kind.Version == "" {
			return kind, fmt.Errorf("find the kind of a %T: it has no apiVersion or no kind: set both", object)
		}
		return inVersion(kind, request.InProcess.Version), nil
	}
	scheme := r.schemeOf(object)
	kinds, _, err := scheme.ObjectKinds(object)
	if runtime.IsNotRegisteredError(err) {
		return schema.GroupVersionKind{}, fmt.Errorf("find the kind of a %T: no scheme has the type: give one that has it with harness.WithScheme(...)", object)
	}
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("find the kind of a %T: %w", object, err)
	}
	kind := choose(kinds, object, request)
	if kind.Version != runtime.APIVersionInternal {
		return inVersion(kind, request.InProcess.Version), nil
	}
	return r.external(kind, object, request)
}

// external returns the external kind of an internal type: in the version of the request, or else in
// the first version of the group that has the kind.
func (r *resolver) external(kind schema.GroupVersionKind, object runtime.Object, request *framework.Request) (schema.GroupVersionKind, error) {
	if request.InProcess.Version.Group == kind.Group && request.InProcess.Version.Version != "" {
		return request.InProcess.Version.WithKind(kind.Kind), nil
	}
	if request.Kind.GroupKind() == kind.GroupKind() && request.Kind.Version != "" && request.Kind.Version != runtime.APIVersionInternal {
		return request.Kind, nil
	}
	scheme := r.schemeOf(object)
	for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		if version.Version != runtime.APIVersionInternal && scheme.Recognizes(version.WithKind(kind.Kind)) {
			return version.WithKind(kind.Kind), nil
		}
	}
	if mapping, err := r.mapper.RESTMapping(kind.GroupKind()); err == nil {
		return mapping.GroupVersionKind, nil
	}
	return kind, fmt.Errorf("find the kind of a %T: it is an internal type, and neither the schemes nor the RESTMapper have a version of %s: give the scheme that has one with harness.WithScheme(...), or the version with AsVersion", object, kind.GroupKind())
}

// choose returns one of several kinds of a Go type. It prefers the kind that the request names,
// then the kind whose group has the name of the type's package (core.Event is Event of the core
// group, not of events.k8s.io), then the first kind.
func choose(kinds []schema.GroupVersionKind, object runtime.Object, request *framework.Request) schema.GroupVersionKind {
	if len(kinds) == 1 {
		return kinds[0]
	}
	for _, kind := range kinds {
		if kind == request.Kind || kind.GroupVersion() == request.InProcess.Version {
			return kind
		}
	}
	for _, kind := range kinds {
		if request.InProcess.Version.Version != "" && kind.Group == request.InProcess.Version.Group {
			return kind
		}
	}
	elements := strings.Split(reflect.TypeOf(object).Elem().PkgPath(), "/")
	for _, kind := range kinds {
		name, _, _ := strings.Cut(kind.Group, ".")
		if kind.Group == "" {
			name = "core"
		}
		if contains(elements, name) {
			return kind
		}
	}
	return kinds[0]
}

// inVersion returns the kind in another version of its group.
func inVersion(kind schema.GroupVersionKind, version schema.GroupVersion) schema.GroupVersionKind {
	if version.Version != "" && version.Group == kind.Group {
		return version.WithKind(kind.Kind)
	}
	return kind
}

// convert returns a copy of the object in another version of its group. If there is no direct
// conversion, it converts through the group's internal version.
func (r *resolver) convert(object runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	scheme := r.schemeOf(object)
	converted, err := scheme.ConvertToVersion(object.DeepCopyObject(), to)
	if err == nil {
		return converted, nil
	}
	hub := schema.GroupVersion{Group: to.Group, Version: runtime.APIVersionInternal}
	if internal, failed := scheme.ConvertToVersion(object.DeepCopyObject(), hub); failed == nil {
		if converted, err = scheme.ConvertToVersion(internal, to); err == nil {
			return converted, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("convert a %T to %s: the scheme cannot: give one with conversions with harness.WithScheme(...)", object, to), err)
}
