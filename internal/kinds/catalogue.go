package kinds

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource in one version that is served.
type Resource struct {
	schema.GroupVersionResource
	// Kind is the kind of its objects.
	Kind schema.GroupVersionKind
	// Namespaced is true if its objects are in namespaces.
	Namespaced bool
	// Verbs are what discovery says can be done with it. Empty for a resource of a CustomResourceDefinition.
	Verbs []string
	// Subresources are the names of its subresources: "status", "scale".
	Subresources []string
	// OtherNames are the singular and the short names, in lower case.
	OtherNames []string
}

// Catalogue has the resources that an API server serves. It implements runtime.EquivalentResourceMapper: all versions of
// a resource are equivalent, and so are events of the core group and of events.k8s.io, which kube-apiserver stores in
// one place (k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go). Its methods are safe for
// concurrent use. Make it with NewCatalogue.
type Catalogue struct {
	mapper runtime.EquivalentResourceRegistry

	mu     sync.RWMutex
	byName map[schema.GroupResource][]*Resource // its versions, in the order in which they were added
	mapped map[schema.GroupVersionResource]bool // resources and subresources that the mapper has
}

// NewCatalogue returns the resources of a discovery and of CustomResourceDefinitions.
//
// If rules match several versions of a resource, the first version is used. For custom resources, the order of
// versions is that of spec.versions. Discovery does not return this order: give the CustomResourceDefinitions too.
func NewCatalogue(lists []*metav1.APIResourceList, definitions ...map[string]any) *Catalogue {
	c := &Catalogue{
		mapper: runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
			if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") {
				return "events"
			}
			return "" // its own name
		}),
		byName: map[schema.GroupResource][]*Resource{}, mapped: map[schema.GroupVersionResource]bool{},
	}
	for _, definition := range definitions {
		c.register(OfDefinition(definition))
	}
	c.Add(lists...)
	for _, definition := range definitions {
		c.Add(OfDefinition(definition)...)
	}
	return c
}

// OfDefinition returns what a CustomResourceDefinition adds to the discovery: its served versions.
func OfDefinition(definition map[string]any) []*metav1.APIResourceList {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition, fields...)
		return value
	}
	short, _, _ := unstructured.NestedStringSlice(definition, "spec", "names", "shortNames")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	var lists []*metav1.APIResourceList
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		resource := metav1.APIResource{
			Name: text("spec", "names", "plural"), Kind: text("spec", "names", "kind"), Namespaced: text("spec", "scope") == "Namespaced",
			SingularName: text("spec", "names", "singular"), ShortNames: short,
		}
		list := &metav1.APIResourceList{GroupVersion: schema.GroupVersion{Group: text("spec", "group"), Version: name}.String(), APIResources: []metav1.APIResource{resource}}
		subresources, _ := version["subresources"].(map[string]any)
		if subresources["status"] != nil {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource.Name + "/status", Kind: resource.Kind, Namespaced: resource.Namespaced})
		}
		if subresources["scale"] != nil {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource.Name + "/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Namespaced: resource.Namespaced})
		}
		lists = append(lists, list)
	}
	return lists
}

// Add adds a part of a discovery. What is known already stays.
func (c *Catalogue) Add(lists ...*metav1.APIResourceList) {
	c.register(lists)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			name, subresource, _ := strings.Cut(item.Name, "/")
			r := c.versionOf(groupVersion.WithResource(name))
			if r == nil { // the resource of a subresource, if an API server does not list it
				r = &Resource{GroupVersionResource: groupVersion.WithResource(name), Kind: groupVersion.WithKind(item.Kind), Namespaced: item.Namespaced, Verbs: item.Verbs}
				c.byName[r.GroupResource()] = append(c.byName[r.GroupResource()], r)
				if subresource == "" {
					for _, other := range append([]string{item.SingularName}, item.ShortNames...) {
						r.OtherNames = append(r.OtherNames, strings.ToLower(other))
					}
				}
			}
			if subresource != "" && !slices.Contains(r.Subresources, subresource) {
				r.Subresources = append(r.Subresources, subresource)
			}
		}
	}
}

// Define adds the served versions of a CustomResourceDefinition in place of what was known of its resource, and returns
// them.
func (c *Catalogue) Define(definition map[string]any) []*Resource {
	lists := OfDefinition(definition)
	var resource schema.GroupResource
	c.mu.Lock()
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		resource = version.WithResource(list.APIResources[0].Name).GroupResource()
		delete(c.byName, resource)
		for _, item := range list.APIResources {
			delete(c.mapped, version.WithResource(item.Name))
		}
	}
	c.mu.Unlock()
	c.Add(lists...)
	return c.Find(resource.Group, resource.Resource)
}

// versionOf returns a resource in a version, or nil. The caller holds c.mu.
func (c *Catalogue) versionOf(resource schema.GroupVersionResource) *Resource {
	for _, known := range c.byName[resource.GroupResource()] {
		if known.Version == resource.Version {
			return known
		}
	}
	return nil
}

// register tells the mapper of resources.
func (c *Catalogue) register(lists []*metav1.APIResourceList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			kind, full := groupVersion.WithKind(item.Kind), groupVersion.WithResource(item.Name)
			if item.Version != "" { // of a subresource: autoscaling/v1 Scale
				kind.Group, kind.Version = item.Group, item.Version
			}
			if !c.mapped[full] {
				c.mapped[full] = true
				name, subresource, _ := strings.Cut(item.Name, "/")
				c.mapper.RegisterKindFor(groupVersion.WithResource(name), subresource, kind)
			}
		}
	}
}

// EquivalentResourcesFor implements runtime.EquivalentResourceMapper.
func (c *Catalogue) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	return c.mapper.EquivalentResourcesFor(resource, subresource)
}

// KindFor implements runtime.EquivalentResourceMapper.
func (c *Catalogue) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	return c.mapper.KindFor(resource, subresource)
}

// Find returns a resource in the versions in which it is served, or none. A subresource in the name is ignored.
func (c *Catalogue) Find(group, resource string) []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	name, _, _ := strings.Cut(resource, "/")
	return slices.Clone(c.byName[schema.GroupResource{Group: group, Resource: name}])
}

// Of returns the resource of a kind, or nil if the kind is not served. A kind without a version stands for any version.
func (c *Catalogue) Of(kind schema.GroupVersionKind) *Resource {
	found := c.where(func(r *Resource) bool {
		return r.Kind == kind || kind.Version == "" && r.Kind.GroupKind() == kind.GroupKind()
	})
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// Groups returns the groups that have a resource of that name, sorted.
func (c *Catalogue) Groups(name string) []string {
	var groups []string
	for _, r := range c.where(func(r *Resource) bool { return r.Resource == name }) {
		groups = append(groups, r.Group)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Named returns the resources that have a word, in lower case, as their kind or as another name.
func (c *Catalogue) Named(word string) []*Resource {
	return c.where(func(r *Resource) bool {
		return r.Resource != word && (strings.ToLower(r.Kind.Kind) == word || slices.Contains(r.OtherNames, word))
	})
}

// All returns all resources, in the order of their names.
func (c *Catalogue) All() []*Resource { return c.where(func(*Resource) bool { return true }) }

// where returns the resources that have a property, in the order of their names.
func (c *Catalogue) where(has func(*Resource) bool) []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var found []*Resource
	for _, versions := range c.byName {
		for _, r := range versions {
			if has(r) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Resource, b.Resource))
	})
	return found
}
