package reach

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewMapper returns a mapper of equivalent resources for an API server. Lists is what the discovery
// of the server returns. All versions of a resource are equivalent, and so are events of the core
// group and of events.k8s.io, which kube-apiserver stores in one place
// (k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go).
//
// If rules match several versions, the first version is used. For custom resources, the order of
// versions is that of spec.versions. Discovery does not return this order, so give the
// CustomResourceDefinitions as definitions.
func NewMapper(lists []*metav1.APIResourceList, definitions ...map[string]any) runtime.EquivalentResourceMapper {
	registry := runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
		if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") {
			return "events"
		}
		return "" // its own name
	})
	registered := map[schema.GroupVersionResource]bool{}
	register := func(groupVersion schema.GroupVersion, item string, kind schema.GroupVersionKind) {
		if full := groupVersion.WithResource(item); !registered[full] {
			registered[full] = true
			name, subresource, _ := strings.Cut(item, "/")
			registry.RegisterKindFor(groupVersion.WithResource(name), subresource, kind)
		}
	}
	for _, definition := range definitions {
		registerDefinition(definition, register)
	}
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			kind := groupVersion.WithKind(item.Kind)
			if item.Version != "" { // of a subresource: autoscaling/v1 Scale
				kind.Group, kind.Version = item.Group, item.Version
			}
			register(groupVersion, item.Name, kind)
		}
	}
	return registry
}

// registerDefinition registers the served versions of a CustomResourceDefinition.
func registerDefinition(definition map[string]any, register func(groupVersion schema.GroupVersion, item string, kind schema.GroupVersionKind)) {
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if served, _ := fields["served"].(bool); !served {
			continue
		}
		groupVersion := schema.GroupVersion{Group: group, Version: name}
		register(groupVersion, plural, groupVersion.WithKind(kind))
		subresources, _ := fields["subresources"].(map[string]any)
		if subresources["status"] != nil {
			register(groupVersion, plural+"/status", groupVersion.WithKind(kind))
		}
		if subresources["scale"] != nil {
			register(groupVersion, plural+"/scale", schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
		}
	}
}
