package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Resource is the resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	// Namespaced is true if objects of it live in namespaces.
	Namespaced bool
	// Deletable is true if the server stores objects of it: they can be listed and deleted.
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
	// subresources are those that discovery returned, by resource. A resource that is not in
	// it was added with a CustomResourceDefinition.
	subresources map[schema.GroupVersionResource][]string
	// withStatus has the resources of CustomResourceDefinitions that were added, and have a status.
	withStatus map[schema.GroupVersionResource]bool
	// known are kinds that other API servers serve: see Know.
	known map[schema.GroupKind]Resource
	// stored are the resources of which a run created objects: see AddStored.
	stored map[schema.GroupVersionResource]Resource
	// servers are the Services of the aggregated API servers, by what they serve.
	servers map[schema.GroupVersion]string
	// unread are the groups with a version that discovery could not read.
	unread []string
}

// NewResources returns Resources without any kind.
func NewResources() *Resources {
	return &Resources{
		byKind: map[schema.GroupVersionKind]Resource{}, namespaced: map[schema.GroupResource]bool{},
		subresources: map[schema.GroupVersionResource][]string{}, withStatus: map[schema.GroupVersionResource]bool{}, known: map[schema.GroupKind]Resource{},
		stored:  map[schema.GroupVersionResource]Resource{},
		servers: map[schema.GroupVersion]string{},
	}
}

// Know makes the kinds of other Resources known without serving them: one of these is not taken for
// a misspelt kind.
func (r *Resources) Know(others *Resources) {
	others.mu.RLock()
	kinds := maps.Clone(others.byKind)
	others.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, resource := range kinds {
		r.known[kind.GroupKind()] = resource
	}
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
		if len(list.APIResources) == 0 {
			r.unread = append(r.unread, groupVersion.Group)
		}
		for _, item := range list.APIResources {
			if parent, subresource, is := strings.Cut(item.Name, "/"); is {
				parent := groupVersion.WithResource(parent)
				r.subresources[parent] = append(r.subresources[parent], subresource)
				continue
			}
			found := Resource{
				GroupVersionResource: groupVersion.WithResource(item.Name),
				Namespaced:           item.Namespaced,
				Deletable:            slices.Contains(item.Verbs, "list") && slices.Contains(item.Verbs, "delete"),
			}
			r.byKind[groupVersion.WithKind(item.Kind)] = found
			r.namespaced[found.GroupResource()] = item.Namespaced
			r.subresources[found.GroupVersionResource] = append(r.subresources[found.GroupVersionResource], "")
		}
	}
}

// Kinds returns the kinds, sorted: "apps/v1 Deployment".
func (r *Resources) Kinds() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var names []string
	for kind := range r.byKind {
		names = append(names, kind.GroupVersion().String()+" "+kind.Kind)
	}
	slices.Sort(names)
	return names
}

// All returns the resources and subresources that the API server serves, as discovery describes them; a
// subresource has the Kind of its resource. If it is not known which subresources there are, there is "widgets/*",
// besides "widgets/status" if there is a status. A resource that other API servers serve (see
// Know) has the version "*", and a group that discovery could not read has the resource "*/*" in it.
func (r *Resources) All() []metav1.APIResource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []metav1.APIResource
	served := map[schema.GroupResource]bool{}
	for kind, one := range r.byKind {
		served[one.GroupResource()] = true
		found := metav1.APIResource{Group: one.Group, Version: one.Version, Kind: kind.Kind, Name: one.Resource, Namespaced: one.Namespaced}
		subresources, discovered := r.subresources[one.GroupVersionResource]
		if !discovered {
			subresources = []string{"", "*"}
		}
		if r.withStatus[one.GroupVersionResource] {
			subresources = append(subresources, "status")
		}
		for _, subresource := range subresources {
			found.Name = strings.TrimSuffix(one.Resource+"/"+subresource, "/")
			all = append(all, found)
		}
	}
	for _, one := range r.known {
		if !served[one.GroupResource()] {
			all = append(all, metav1.APIResource{Group: one.Group, Version: "*", Name: one.Resource, Namespaced: one.Namespaced})
			all = append(all, metav1.APIResource{Group: one.Group, Version: "*", Name: one.Resource + "/*", Namespaced: one.Namespaced})
		}
	}
	for _, group := range r.unread {
		all = append(all, metav1.APIResource{Group: group, Version: "*", Name: "*/*"})
	}
	return all
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
		name, _ := version["name"].(string)
		groupVersion := schema.GroupVersion{Group: group, Version: name}
		res := Resource{GroupVersionResource: groupVersion.WithResource(plural), Namespaced: scope == "Namespaced", Deletable: true}
		r.byKind[groupVersion.WithKind(kind)] = res
		r.namespaced[res.GroupResource()] = res.Namespaced
		delete(r.subresources, res.GroupVersionResource)
		_, r.withStatus[res.GroupVersionResource], _ = unstructured.NestedMap(version, "subresources", "status")
		added = append(added, res)
	}
	return added
}

func servedVersions(crd map[string]any) []map[string]any {
	versions, _, _ := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	list, _ := versions.([]any)
	var served []map[string]any
	for _, item := range list {
		version, ok := item.(map[string]any)
		if _, named := version["name"].(string); ok && named && version["served"] == true {
			served = append(served, version)
		}
	}
	return served
}

// Of returns the resource of a kind. The error is a framework.ErrNotServed if the API server does
// not serve the kind, unless the kind seems to be misspelt: then it has a suggestion.
func (r *Resources) Of(kind schema.GroupVersionKind) (Resource, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if found, ok := r.byKind[kind]; ok {
		return found, nil
	}
	not := &framework.NotServedError{Name: kind.GroupVersion().String() + " " + kind.Kind}
	if correct := r.correct(kind); correct != "" {
		return Resource{}, fmt.Errorf("there is no kind %s in %s; did you mean %q?", kind.Kind, kind.GroupVersion(), correct)
	}
	if served := r.servedIn(kind.GroupKind()); len(served) > 0 {
		return Resource{}, fmt.Errorf("%w (it serves %s)", not, strings.Join(served, ", "))
	}
	return Resource{}, fmt.Errorf("%w (is its CustomResourceDefinition given?)", not)
}

// Request is a Request with the resource of its kind.
type Request struct {
	framework.Request
	Resource Resource
}

// Resolve finds the resource of a Request. The error is that of Of.
func (r *Resources) Resolve(request framework.Request) (Request, error) {
	res, err := r.Of(request.Kind)
	return Request{request, res}, err
}

// servedIn returns the versions in which a kind is served, sorted: "example.com/v1 Widget".
func (r *Resources) servedIn(kind schema.GroupKind) []string {
	var served []string
	for one := range r.byKind {
		if one.GroupKind() == kind {
			served = append(served, one.GroupVersion().String()+" "+one.Kind)
		}
	}
	slices.Sort(served)
	return served
}

// correct returns the kind of the same group that a misspelt one stands for, or "". A kind that is
// known is not misspelt.
func (r *Resources) correct(kind schema.GroupVersionKind) string {
	if _, ok := r.known[kind.GroupKind()]; ok {
		return ""
	}
	var names []string
	for served := range r.byKind {
		if served.GroupKind() == kind.GroupKind() {
			return "" // in another version
		}
		if served.Group == kind.Group {
			names = append(names, served.Kind)
		}
	}
	for known := range r.known {
		if known.Group == kind.Group {
			names = append(names, known.Kind)
		}
	}
	slices.Sort(names)
	return suggest.Nearest(kind.Kind, names)
}

// ServesSubresource returns an error if the API server does not serve a subresource: a
// framework.ErrNotServed, unless the name seems to be misspelt. Whether a custom resource has one
// is for its CustomResourceDefinition to say, and for the API server to answer.
func (r *Resources) ServesSubresource(res Resource, subresource string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	served, discovered := r.subresources[res.GroupVersionResource]
	if !discovered || slices.Contains(served, subresource) {
		return nil
	}
	if correct := suggest.Nearest(subresource, served); correct != "" {
		return fmt.Errorf("there is no subresource %s of %s; did you mean %q?", subresource, res.GroupResource(), correct)
	}
	return &framework.NotServedError{Name: res.GroupVersion().String() + " " + res.Resource + "/" + subresource}
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

// AddStored adds a resource of which a run creates objects. Deletable then returns it, whatever discovery says. It
// reports whether the resource is new.
func (r *Resources) AddStored(res Resource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.stored[res.GroupVersionResource]
	res.Deletable = true
	r.stored[res.GroupVersionResource] = res
	return !known
}

// Stored returns the resources of AddStored of one scope.
func (r *Resources) Stored(namespaced bool) []Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(r.stored)), func(res Resource) bool { return res.Namespaced != namespaced })
}

// Deletable returns every resource of one scope that the API server stores objects of, one version of each: the
// resources of discovery and of AddStored.
func (r *Resources) Deletable(namespaced bool) []Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[schema.GroupResource]bool{}
	var found []Resource
	add := func(item Resource) {
		if item.Namespaced == namespaced && item.Deletable && !seen[item.GroupResource()] {
			seen[item.GroupResource()] = true
			found = append(found, item)
		}
	}
	for _, item := range r.stored {
		add(item)
	}
	for _, item := range r.byKind {
		add(item)
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

// EquivalentResourcesFor implements runtime.EquivalentResourceMapper: it returns all versions of a resource.
func (r *Resources) EquivalentResourcesFor(resource schema.GroupVersionResource, _ string) []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{resource}
	for _, other := range r.OtherVersions(Resource{GroupVersionResource: resource}) {
		all = append(all, other.GroupVersionResource)
	}
	return all
}

// KindFor implements runtime.EquivalentResourceMapper: for a subresource too, it returns the kind of the
// resource.
func (r *Resources) KindFor(resource schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for kind, item := range r.byKind {
		if item.GroupVersionResource == resource {
			return kind
		}
	}
	return schema.GroupVersionKind{}
}
