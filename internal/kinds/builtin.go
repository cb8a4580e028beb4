package kinds

import (
	_ "embed"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtInTable are the resources that a kube-apiserver serves by default. A line has the group and version, the resource,
// the kind (with group and version if they differ), the scope, the singular name, the short names, and "delete" if objects are stored: they
// can be listed and deleted. A test compares
// it with an API server and writes it with -update.
//
//go:embed resources.tsv
var builtInTable string

// BuiltIn returns the resources that a kube-apiserver serves by default, in the form of a discovery.
func BuiltIn() []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for line := range strings.Lines(builtInTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		resource := metav1.APIResource{Name: cells[1], Kind: cells[2], Namespaced: cells[3] == "namespaced", SingularName: cells[4]}
		if parts := strings.Split(cells[2], "/"); len(parts) == 3 {
			resource.Group, resource.Version, resource.Kind = parts[0], parts[1], parts[2]
		}
		if cells[5] != "" {
			resource.ShortNames = strings.Split(cells[5], ",")
		}
		if cells[6] != "" {
			resource.Verbs = metav1.Verbs{"list", cells[6]}
		}
		if len(lists) == 0 || lists[len(lists)-1].GroupVersion != cells[0] {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: cells[0]})
		}
		last := lists[len(lists)-1]
		last.APIResources = append(last.APIResources, resource)
	}
	return lists
}

// IsBuiltInGroup reports whether a kube-apiserver serves an API group by default, or reserves it for Kubernetes.
func IsBuiltInGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.Contains("\n"+builtInTable, "\n"+group+"/")
}

//nolint:gochecknoglobals // read once, and never changed
var builtIn = sync.OnceValue(func() *Catalogue { return NewCatalogue(BuiltIn()) })

// SubresourcesOf returns the subresources of one of Kubernetes' own resources. Nil means that it has none, or that it is unknown.
func SubresourcesOf(resource schema.GroupResource) (all []string) {
	for _, version := range builtIn().Find(resource.Group, resource.Resource) {
		all = append(all, version.Subresources...)
	}
	return all
}

// IsCluster reports whether objects of one of Kubernetes' own kinds are in no namespace. A test compares it with the
// discovery of a kube-apiserver.
func IsCluster(gk schema.GroupKind) bool { return clusterKinds()[gk] }

//nolint:gochecknoglobals // read once, and never changed
var clusterKinds = sync.OnceValue(func() map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{ // what is not served by default
		{Group: "authentication.k8s.io", Kind: "TokenRequest"}: true, {Group: "imagepolicy.k8s.io", Kind: "ImageReview"}: true,
		{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}: true, {Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"}: true,
	}
	for _, list := range BuiltIn() {
		version, _ := schema.ParseGroupVersion(list.GroupVersion) // of the table
		for _, r := range list.APIResources {
			if !r.Namespaced && !strings.Contains(r.Name, "/") {
				all[version.WithKind(r.Kind).GroupKind()] = true
			}
		}
	}
	return all
})
