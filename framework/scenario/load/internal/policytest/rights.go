package policytest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// superusers is the group that may do everything.
const superusers = "system:masters"

// rightsOf returns the RBAC objects by which the users of requests may send them, so that a
// policy decides and not the authorizer.
func rightsOf(requests []*policyRequest) []map[string]any {
	var out []map[string]any
	known := map[string]bool{}
	for _, request := range requests {
		user := request.step.As
		if user == nil || slices.Contains(user.Groups, superusers) {
			continue
		}
		kind := schema.FromAPIVersionAndKind(request.object.Node.Text("apiVersion"), request.object.Node.Text("kind"))
		metadata, _ := request.object.shipped["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		if key := fmt.Sprint(user.Name, kind.GroupKind(), namespace); !known[key] {
			known[key] = true
			out = append(out, rights(fmt.Sprintf("policytest-%d", len(known)), user.Name, kind, namespace)...)
		}
	}
	return out
}

// rights returns a role for everything with objects of a kind, in one namespace if the kind is in
// namespaces, and its binding to a user.
func rights(name, user string, kind schema.GroupVersionKind, namespace string) []map[string]any {
	const group = "rbac.authorization.k8s.io"
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	role, metadata := "Role", map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	} else if isClusterScoped(kind.Kind) {
		role, metadata["name"] = "ClusterRole", "$(id)-"+name
	}
	manifest := func(kind string, fields map[string]any) map[string]any {
		fields["apiVersion"], fields["kind"], fields["metadata"] = group+"/v1", kind, metadata
		return fields
	}
	return []map[string]any{
		manifest(role, map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{kind.Group}, "resources": []any{plural.Resource}, "verbs": []any{"*"},
		}}}),
		manifest(role+"Binding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": role, "name": metadata["name"]},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": user}},
		}),
	}
}

// isClusterScoped reports whether a kind of Kubernetes itself is not in namespaces, for those
// that policies are often about.
func isClusterScoped(kind string) bool {
	return slices.Contains([]string{
		"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
		"StorageClass", "IngressClass", "GatewayClass", "PriorityClass", "RuntimeClass", "CertificateSigningRequest",
	}, kind)
}
