package bystander

// kind is a kind of object that a bystander writes.
type kind struct {
	path       string
	namespaced bool
	manifest   map[string]any
}

// object returns an object of the kind.
func (k kind) object(name string) map[string]any {
	out := map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"team": Prefix}}}
	for key, value := range k.manifest {
		out[key] = value
	}
	return out
}

// kinds returns kinds that scenarios use. No controller changes the objects that it describes.
func kinds() []kind {
	pod := map[string]any{
		"nodeSelector":                 map[string]any{"nowhere": "at-all"}, // so that it is not scheduled
		"automountServiceAccountToken": false,                               // the volume of a token has a random name
		"containers":                   []any{map[string]any{"name": "c", "image": "example.com/none"}},
	}
	labels := map[string]any{"app": "a"}
	return []kind{
		{"/api/v1/namespaces/NAMESPACE/configmaps", true, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}},
		{"/api/v1/namespaces", false, map[string]any{"apiVersion": "v1", "kind": "Namespace"}},
		{"/api/v1/namespaces/NAMESPACE/pods", true, map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": pod}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", false, map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []any{}}},
		{"/api/v1/namespaces/NAMESPACE/configmaps", true, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}},
		{"/api/v1/namespaces/NAMESPACE/secrets", true, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": "b"}}},
		{"/api/v1/namespaces/NAMESPACE/services", true, map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}},
		{"/apis/apps/v1/namespaces/NAMESPACE/deployments", true, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"replicas": 0, "paused": true, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
		}}},
		{"/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases", true, map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles", true, map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []any{}}},
	}
}
