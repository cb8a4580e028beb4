package fakes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newMapper returns a mapper of all kinds. Where more than one group or version
// fits, Kubernetes' core group comes first, and the preferred version of a group.
func newMapper(ks *kinds) meta.RESTMapper {
	versions := ks.versions()
	mapper := meta.NewDefaultRESTMapper(versions)
	resources := make([]schema.GroupVersionResource, 0, len(versions))
	preferred := make([]schema.GroupVersionKind, 0, len(versions))
	for _, gv := range versions {
		for resource, k := range ks.served(gv) {
			scope := meta.RESTScopeNamespace
			if !k.namespaced {
				scope = meta.RESTScopeRoot
			}
			singular := gv.WithResource(strings.ToLower(k.gvk.Kind))
			mapper.AddSpecific(k.gvk, gv.WithResource(resource), singular, scope)
		}
		resources = append(resources, gv.WithResource(meta.AnyResource))
		preferred = append(preferred, gv.WithKind(meta.AnyKind))
	}
	return meta.PriorityRESTMapper{Delegate: mapper, ResourcePriority: resources, KindPriority: preferred}
}

// sortVersions sorts groups by name, and keeps the order of the versions in them.
func sortVersions(versions []schema.GroupVersion) {
	slices.SortStableFunc(versions, func(a, b schema.GroupVersion) int { return strings.Compare(a.Group, b.Group) })
}
