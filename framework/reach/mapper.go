package reach

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewMapper returns which resources are equivalent on an API server, from what its discovery returns:
// the versions of a resource are, and so are the events of both API groups, which kube-apiserver
// stores in one place (k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go).
//
// If the rules have several versions, the first one counts. For custom resources this is the order of
// spec.versions, which discovery does not return: give their CustomResourceDefinitions.
func NewMapper(lists []*metav1.APIResourceList, definitions ...map[string]any) runtime.EquivalentResourceMapper {
	registry := runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
		if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") {
			return "events"
		}
		return "" // its own name
	})
	registered := map[schema.GroupVersionResource]bool{}
	register := func(groupVersion schema.GroupVersion, only string) {
		for _, list := range lists {
			if list.GroupVersion != groupVersion.String() {
				continue
			}
			for _, item := range list.APIResources {
				name, subresource, _ := strings.Cut(item.Name, "/")
				full := groupVersion.WithResource(item.Name)
				if registered[full] || only != "" && name != only {
					continue
				}
				registered[full] = true
				kind := groupVersion.WithKind(item.Kind)
				if item.Version != "" { // of a subresource: autoscaling/v1 Scale
					kind.Group, kind.Version = item.Group, item.Version
				}
				registry.RegisterKindFor(groupVersion.WithResource(name), subresource, kind)
			}
		}
	}
	for _, definition := range definitions {
		group, _, _ := unstructured.NestedString(definition, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _ := fields["name"].(string)
			register(schema.GroupVersion{Group: group, Version: name}, plural)
		}
	}
	for _, list := range lists {
		if groupVersion, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			register(groupVersion, "")
		}
	}
	return registry
}
