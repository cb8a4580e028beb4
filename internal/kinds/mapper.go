package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RESTMapper returns a mapper of all kinds. Most of its work is done at the first call that needs
// it.
func (r *Registry) RESTMapper() meta.RESTMapper {
	return quickMapper{meta.NewLazyRESTMapperLoader(func() (meta.RESTMapper, error) { return newMapper(r), nil }), r}
}

// newMapper returns a mapper of all kinds. If several groups or versions match, it prefers the
// core group, and in a group the preferred version.
func newMapper(r *Registry) meta.RESTMapper {
	versions := r.Versions()
	mapper := meta.NewDefaultRESTMapper(versions)
	resources := make([]schema.GroupVersionResource, 0, len(versions))
	preferred := make([]schema.GroupVersionKind, 0, len(versions))
	for _, gv := range versions {
		for resource, k := range r.Served(gv) {
			mapper.AddSpecific(k.GVK, gv.WithResource(resource), gv.WithResource(strings.ToLower(k.GVK.Kind)), k.scope())
		}
		resources = append(resources, gv.WithResource(meta.AnyResource))
		preferred = append(preferred, gv.WithKind(meta.AnyKind))
	}
	return meta.PriorityRESTMapper{Delegate: mapper, ResourcePriority: resources, KindPriority: preferred}
}

// quickMapper makes the mapper of all kinds when it is needed. The most common call, for one
// version of a kind, does not need it.
type quickMapper struct {
	meta.RESTMapper
	kinds *Registry
}

// RESTMapping implements meta.RESTMapper.
func (m quickMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(gk, versions...)
	}
	k, err := m.kinds.ByKind(gk.WithVersion(versions[0]))
	if err != nil || m.kinds.ByResource(k.GVR) != k {
		return m.RESTMapper.RESTMapping(gk, versions...)
	}
	return &meta.RESTMapping{Resource: k.GVR, GroupVersionKind: k.GVK, Scope: k.scope()}, nil
}

// scope returns the scope of the objects of a kind.
func (k *Kind) scope() meta.RESTScope {
	if k.Namespaced {
		return meta.RESTScopeNamespace
	}
	return meta.RESTScopeRoot
}
