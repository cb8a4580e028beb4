package cluster

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// resource is how a kind is addressed.
type resource struct {
	schema.GroupVersionResource
	Namespaced bool
	// Deletable is true where the server lists and deletes collections of it.
	Deletable bool
}

// resources knows how kinds are addressed: what discovery says, and the custom
// resources that were installed since.
type resources struct {
	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]resource
	// namespaced is true for a group and resource that exists in a namespace only.
	namespaced map[schema.GroupResource]bool
}

func discoverResources(client discovery.DiscoveryInterface) (*resources, error) {
	// A broken aggregated API fails its own group only; the others are returned.
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover resources of the API server: %w", err)
	}
	r := &resources{byKind: map[schema.GroupVersionKind]resource{}, namespaced: map[schema.GroupResource]bool{}}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			if strings.Contains(item.Name, "/") {
				continue
			}
			found := resource{
				GroupVersionResource: gv.WithResource(item.Name),
				Namespaced:           item.Namespaced,
				Deletable:            strings.Contains(item.Verbs.String(), "deletecollection"),
			}
			r.byKind[gv.WithKind(item.Kind)] = found
			r.namespaced[found.GroupResource()] = item.Namespaced
		}
	}
	return r, nil
}

// addCRD makes the kinds of a CustomResourceDefinition known.
func (r *resources) addCRD(crd map[string]any) {
	group, _ := nestedString(crd, "spec", "group")
	plural, _ := nestedString(crd, "spec", "names", "plural")
	kind, _ := nestedString(crd, "spec", "names", "kind")
	scope, _ := nestedString(crd, "spec", "scope")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, version := range servedVersions(crd) {
		gv := schema.GroupVersion{Group: group, Version: version}
		r.byKind[gv.WithKind(kind)] = resource{GroupVersionResource: gv.WithResource(plural), Namespaced: scope == "Namespaced", Deletable: true}
	}
	r.namespaced[schema.GroupResource{Group: group, Resource: plural}] = scope == "Namespaced"
}

// of returns how a kind is addressed.
func (r *resources) of(gvk schema.GroupVersionKind) (resource, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if found, ok := r.byKind[gvk]; ok {
		return found, nil
	}
	return resource{}, fmt.Errorf("find resource of %s: the API server serves no such kind (is its CustomResourceDefinition given?)", gvk)
}

// onlyNamespaced reports whether every resource that a rule names is known to
// live in a namespace.
func (r *resources) onlyNamespaced(groups, names []string) bool {
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

// deletable returns every resource of one scope that can be deleted as a
// collection, one version of each.
func (r *resources) deletable(namespaced bool) []resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[schema.GroupResource]bool{}
	var found []resource
	for _, item := range r.byKind {
		if item.Namespaced == namespaced && item.Deletable && !seen[item.GroupResource()] {
			seen[item.GroupResource()] = true
			found = append(found, item)
		}
	}
	return found
}

func servedVersions(crd map[string]any) []string {
	versions, _ := nestedSlice(crd, "spec", "versions")
	var served []string
	for _, item := range versions {
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
