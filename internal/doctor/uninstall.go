package doctor

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownDeletions checks that what the files of a webhook define can be deleted when the webhook is gone: CustomResourceDefinitions and
// roles, custom resources, and custom resources with finalizers, which an update removes. The update alone is a note: without its
// controller, nothing removes a finalizer.
func (c *checker) ownDeletions(h *webhook) {
	var probes []probe
	for key, resource := range map[string]string{
		definitionKind: "customresourcedefinitions.apiextensions.k8s.io",
		clusterRoles:   "clusterroles.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io": "clusterrolebindings.rbac.authorization.k8s.io",
	} {
		for _, o := range c.list(key, "") {
			if o.manifest != nil {
				probes = append(probes, newProbe(c.world, about{operation: "DELETE", resource: resource, name: o.GetName()}))
			}
		}
	}
	slices.SortFunc(probes, func(a, b probe) int { return strings.Compare(a.text, b.text) })
	var updates []probe
	for _, o := range c.list(definitionKind, "") {
		defined := schema.ParseGroupResource(o.GetName())
		for i, known := range c.Find(defined.Group, defined.Resource) {
			if i > 0 || o.manifest == nil {
				break // one version is enough
			}
			a := about{operation: "DELETE", resource: known.GroupResource().String(), version: known.Version, name: "example-1", user: "namespace-controller"}
			if a.namespace = ordinary; !known.Namespaced {
				a.namespace = ""
			}
			probes = append(probes, newProbe(c.world, a))
			if a.operation, a.user = "UPDATE", ""; c.removesFinalizers(h.backend, known.GroupResource()) {
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
