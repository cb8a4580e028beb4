package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kinds"
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

// Resources has what an API server serves: what discovery returned, and the CustomResourceDefinitions that were added
// since. It also knows which API server serves what.
type Resources struct {
	served *kinds.Catalogue
	// builtIn are the kinds of a kube-apiserver: one of these is not taken for a misspelt kind.
	builtIn *kinds.Catalogue

	mu sync.RWMutex
	// custom are the resources of AddCRD. Their subresources are for the API server to say.
	custom map[schema.GroupResource]bool
	// servers are the Services of the aggregated API servers, by what they serve.
	servers map[schema.GroupVersion]string
	// unread are the groups with a version that discovery could not read.
	unread []string
}

// NewResources returns the Resources of a discovery.
func NewResources(lists ...*metav1.APIResourceList) *Resources {
	r := &Resources{
		served: kinds.NewCatalogue(nil), builtIn: kinds.NewCatalogue(kinds.BuiltIn()),
		custom: map[schema.GroupResource]bool{}, servers: map[schema.GroupVersion]string{},
	}
	r.Add(lists...)
	return r
}

// Add adds a part of the result of discovery.
func (r *Resources) Add(lists ...*metav1.APIResourceList) {
	r.served.Add(lists...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range lists {
		if version, err := schema.ParseGroupVersion(list.GroupVersion); err == nil && len(list.APIResources) == 0 {
			r.unread = append(r.unread, version.Group)
		}
	}
}

// AddCRD adds the kinds of a CustomResourceDefinition and returns their resources.
func (r *Resources) AddCRD(crd map[string]any) []Resource {
	defined := r.served.Define(crd)
	r.mu.Lock()
	for _, one := range defined {
		r.custom[one.GroupResource()] = true
	}
	r.mu.Unlock()
	return r.all(defined)
}

// all returns resources of the catalogue.
func (r *Resources) all(list []*kinds.Resource) []Resource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found := make([]Resource, len(list))
	for i, one := range list {
		deletable := r.custom[one.GroupResource()] || slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "delete")
		found[i] = Resource{one.GroupVersionResource, one.Namespaced, deletable}
	}
	return found
}

// Kinds returns the kinds, sorted: "apps/v1 Deployment".
func (r *Resources) Kinds() []string {
	var names []string
	for _, one := range r.served.All() {
		names = append(names, one.GroupVersion().String()+" "+one.Kind.Kind)
	}
	slices.Sort(names)
	return names
}

// All returns the resources and subresources that the API server serves, as discovery describes them; a
// subresource has the Kind of its resource. If it is not known which subresources there are, there is "widgets/*",
// besides "widgets/status" if there is a status. A resource of a kube-apiserver that this one does not serve
// has the version "*", and a group that discovery could not read has the resource "*/*" in it.
func (r *Resources) All() []metav1.APIResource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []metav1.APIResource
	for _, one := range r.served.All() {
		subresources := append([]string{""}, one.Subresources...)
		if r.custom[one.GroupResource()] {
			subresources = append(subresources, "*")
		}
		for _, subresource := range subresources {
			all = append(all, metav1.APIResource{
				Group: one.Group, Version: one.Version, Kind: one.Kind.Kind, Name: strings.TrimSuffix(one.Resource+"/"+subresource, "/"), Namespaced: one.Namespaced,
			})
		}
	}
	for _, one := range r.builtIn.All() {
		if len(r.served.Find(one.Group, one.Resource)) == 0 {
			all = append(all, metav1.APIResource{Group: one.Group, Version: "*", Name: one.Resource, Namespaced: one.Namespaced},
				metav1.APIResource{Group: one.Group, Version: "*", Name: one.Resource + "/*", Namespaced: one.Namespaced})
		}
	}
	for _, group := range r.unread {
		all = append(all, metav1.APIResource{Group: group, Version: "*", Name: "*/*"})
	}
	return all
}

// Of returns the resource of a kind. The error is a framework.ErrNotServed if the API server does
// not serve the kind, unless the kind seems to be misspelt: then it is a framework.ManifestError with a suggestion.
func (r *Resources) Of(kind schema.GroupVersionKind) (Resource, error) {
	if found := r.served.Of(kind); found != nil {
		return r.all([]*kinds.Resource{found})[0], nil
	}
	not := &framework.NotServedError{Name: kind.GroupVersion().String() + " " + kind.Kind}
	var served, names []string
	for _, one := range r.served.All() {
		if one.Kind.GroupKind() == kind.GroupKind() {
			served = append(served, one.GroupVersion().String()+" "+one.Kind.Kind)
		}
		if one.Group == kind.Group {
			names = append(names, one.Kind.Kind)
		}
	}
	if len(served) > 0 {
		slices.Sort(served)
		return Resource{}, fmt.Errorf("%w (it serves %s)", not, strings.Join(served, ", "))
	}
	for _, one := range r.builtIn.All() {
		if one.Group == kind.Group {
			names = append(names, one.Kind.Kind)
		}
	}
	slices.Sort(names)
	if correct := suggest.Nearest(kind.Kind, names); correct != "" && r.builtIn.Of(kind.GroupKind().WithVersion("")) == nil {
		return Resource{}, &framework.ManifestError{Field: "kind", Err: fmt.Errorf("there is no kind %s in %s; did you mean %q?", kind.Kind, kind.GroupVersion(), correct)}
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

// ServesSubresource returns an error if the API server does not serve a subresource: a
// framework.ErrNotServed, unless the name seems to be misspelt. Whether a custom resource has one
// is for its CustomResourceDefinition to say, and for the API server to answer.
func (r *Resources) ServesSubresource(res Resource, subresource string) error {
	r.mu.RLock()
	custom := r.custom[res.GroupResource()]
	r.mu.RUnlock()
	for _, one := range r.served.Find(res.Group, res.Resource) {
		if custom || subresource == "" || one.Version != res.Version || slices.Contains(one.Subresources, subresource) {
			continue
		}
		if correct := suggest.Nearest(subresource, one.Subresources); correct != "" {
			return fmt.Errorf("there is no subresource %s of %s; did you mean %q?", subresource, res.GroupResource(), correct)
		}
		return &framework.NotServedError{Name: res.GroupVersion().String() + " " + res.Resource + "/" + subresource}
	}
	return nil
}

// Deletable returns every resource of one scope that the API server stores objects of, one version of each.
func (r *Resources) Deletable(namespaced bool) []Resource {
	seen := map[schema.GroupResource]bool{}
	return slices.DeleteFunc(r.all(r.served.All()), func(item Resource) bool {
		if item.Namespaced != namespaced || !item.Deletable || seen[item.GroupResource()] {
			return true
		}
		seen[item.GroupResource()] = true
		return false
	})
}

// APIServices returns the kind that registers an aggregated API server.
func APIServices() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// FindAggregated finds out which groups and versions other API servers serve, behind this one: those whose
// APIService names a Service (https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/).
// Discover comes first.
func (c *Client) FindAggregated(ctx context.Context) error {
	res, err := c.Resources.Of(APIServices())
	if err != nil {
		return nil // without APIServices, the API server serves everything itself
	}
	list, err := c.ListObjects(ctx, res, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("find the aggregated API servers: %w", err)
	}
	c.Resources.mu.Lock()
	defer c.Resources.mu.Unlock()
	for _, item := range list.Items {
		if service, found, _ := unstructured.NestedMap(item.Object, "spec", "service"); found {
			group, _, _ := unstructured.NestedString(item.Object, "spec", "group")
			version, _, _ := unstructured.NestedString(item.Object, "spec", "version")
			c.Resources.servers[schema.GroupVersion{Group: group, Version: version}] = fmt.Sprintf("%v/%v", service["namespace"], service["name"])
		}
	}
	return nil
}

// Aggregated returns the Service of the aggregated API server that serves a group and version, "namespace/name",
// or "" if the API server itself serves it.
func (r *Resources) Aggregated(version schema.GroupVersion) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.servers[version]
}
