package doctor

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownDeletions checks that what the files have beside a webhook can be deleted when the webhook is gone: objects without a namespace,
// custom resources of their definitions, and custom resources with finalizers, which an update removes. The update alone is a note: often
// the controller that removes finalizers is gone too.
func (c *checker) ownDeletions(h *webhook) {
	var probes, updates []probe
	for _, m := range c.input.Manifests {
		o := unstructured.Unstructured{Object: m.Object}
		if known := c.Of(o.GroupVersionKind()); known != nil && !known.Namespaced {
			probes = append(probes, newProbe(c.world, about{operation: "DELETE", resource: known.GroupResource().String(), version: known.Version, name: o.GetName(), labels: o.GetLabels()}))
		}
		defined := schema.ParseGroupResource(o.GetName())
		if known := c.Find(defined.Group, defined.Resource); len(known) > 0 && kindKey(o.GroupVersionKind()) == definitionKind {
			a := about{operation: "DELETE", resource: defined.String(), version: known[0].Version, name: "example-1"}
			if known[0].Namespaced {
				a.namespace, a.user = ordinary, "namespace-controller"
			}
			probes = append(probes, newProbe(c.world, a))
			if a.operation = "UPDATE"; c.removesFinalizers(h.backend, defined) {
				updates = append(updates, withoutFinalizers(c.world, newProbe(c.world, a)))
			}
		}
	}
	f := Finding{Message: "its own objects cannot be deleted once the webhook is gone", Fix: "leave out DELETE, and updates of objects with a deletionTimestamp; or let what uninstalls the webhook delete its configuration first"}
	if called, unknown := c.reached(h, probes); len(called) == 0 || unknown != "" {
		f.Severity = Note
	}
	c.requests(h, "rules", append(probes, updates...), f)
}

// removesFinalizers reports whether another workload beside a backend, with the rights of a role in the files, works with the finalizers of
// a resource. It needs the webhook while the webhook is gone.
func (w *world) removesFinalizers(b *backend, resource schema.GroupResource) bool {
	others := len(w.list("Deployment.apps", b.namespace)) + len(w.list("StatefulSet.apps", b.namespace))
	return len(b.workloads) > 0 && others > len(b.workloads) && slices.ContainsFunc(w.byKind[clusterRoles], func(role *object) bool {
		return slices.ContainsFunc(as[rbacv1.ClusterRole](role).Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource+"/finalizers")
		})
	})
}

// withoutFinalizers returns an update that removes the finalizers of an object that is being deleted.
func withoutFinalizers(w *world, p probe) probe {
	updated, old := &unstructured.Unstructured{Object: p.Object}, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(p.Object)}
	for _, o := range []*unstructured.Unstructured{updated, old} {
		_ = unstructured.SetNestedField(o.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	}
	old.SetFinalizers([]string{"example.com/finalizer"})
	w.setObjects(&p.Request, updated.Object, old.Object)
	return probeOf(p.Request, p.text+", which removes its finalizers")
}
