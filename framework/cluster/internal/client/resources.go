package client

import (
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	// Namespaced is true if objects of it live in namespaces.
	Namespaced bool
	// Deletable is true if the server lists and deletes collections of it.
	Deletable bool
}

// Namespaces returns the resource of namespaces.
func Namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// Resources maps kinds to resources: what discovery returned, and the
// CustomResourceDefinitions that were added since.
type Resources struct {
	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]Resource
	// namespaced is true for resources that live in namespaces.
	namespaced map[schema.GroupResource]bool
}

// NewResources returns Resources without any kind.
func NewResources() *Resources {
	return &Resources{byKind: map[schema.GroupVersionKind]Resource{}, namespaced: map[schema.GroupResource]bool{}}
}

// Add adds a part of the result of discovery.
func (r *Resources) Add(lists ...*metav1.APIResourceList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			if strings.Contains(item.Name, "/") {
				continue // a subresource
			}
			found := Resource{
				GroupVersionResource: groupVersion.WithResource(item.Name),
				Namespaced:           item.Namespaced,
				Deletable:            strings.Contains(item.Verbs.String(), "deletecollection"),
			}
			r.byKind[groupVersion.WithKind(item.Kind)] = found
			r.namespaced[found.GroupResource()] = item.Namespaced
		}
	}
}

// AddCRD adds the kinds of a CustomResourceDefinition and returns their resources.
func (r *Resources) AddCRD(crd map[string]any) []Resource {
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd, "spec", "scope")
	r.mu.Lock()
	defer r.mu.Unlock()
	var added []Resource
	for _, version := range servedVersions(crd) {
		groupVersion := schema.GroupVersion{Group: group, Version: version}
		res := Resource{GroupVersionResource: groupVersion.WithResource(plural), Namespaced: scope == "Namespaced", Deletable: true}
		r.byKind[groupVersion.WithKind(kind)] = res
		r.namespaced[res.GroupResource()] = res.Namespaced
		added = append(added, res)
	}
	return added
}

func servedVersions(crd map[string]any) []string {
	versions, _, _ := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	list, _ := versions.([]any)
	var served []string
	for _, item := range list {
		version, ok := item.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		if name, ok := version["name"].(string); ok {
			served = append(served, name)
		}
	}
	return served
}

// Of returns the resource of a kind. It is an error if the API server does not serve
// the kind.
func (r *Resources) Of(kind schema.GroupVersionKind) (Resource, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if found, ok := r.byKind[kind]; ok {
		return found, nil
	}
	return Resource{}, fmt.Errorf("find resource of %s: the API server does not serve this kind (is its CustomResourceDefinition given?)", kind)
}

// ObjectOf returns the Object with a Key. It is false if the API server does not serve the
// resource.
func (r *Resources) ObjectOf(key string) (Object, bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Object{}, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, item := range r.byKind {
		if item.GroupResource() == schema.ParseGroupResource(parts[0]) && item.Namespaced == (len(parts) == 3) {
			o := Object{Resource: item, Name: parts[len(parts)-1]}
			if item.Namespaced {
				o.Namespace = parts[1]
			}
			return o, true
		}
	}
	return Object{}, false
}

// AllNamespaced reports whether every resource that a rule names is known to live in
// namespaces. Names can have a subresource ("pods/*"). A wildcard is not known to.
func (r *Resources) AllNamespaced(groups, names []string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, group := range groups {
		for _, name := range names {
			name, _, _ = strings.Cut(name, "/")
			if group == "*" || name == "*" || !r.namespaced[schema.GroupResource{Group: group, Resource: name}] {
				return false
			}
		}
	}
	return true
}

// Deletable returns every resource of one scope whose collections can be deleted, one
// version of each.
func (r *Resources) Deletable(namespaced bool) []Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[schema.GroupResource]bool{}
	var found []Resource
	for _, item := range r.byKind {
		if item.Namespaced == namespaced && item.Deletable && !seen[item.GroupResource()] {
			seen[item.GroupResource()] = true
			found = append(found, item)
		}
	}
	return found
}

// OtherVersions returns the resource in its other versions.
func (r *Resources) OtherVersions(res Resource) []Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var found []Resource
	for _, item := range r.byKind {
		if item.GroupResource() == res.GroupResource() && item.Version != res.Version {
			found = append(found, item)
		}
	}
	return found
}
