package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
		return nil //nolint:nilerr // without APIServices, the API server serves everything itself
	}
	list, err := c.ListObjects(ctx, res, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("find the aggregated API servers: %w", err)
	}
	for _, item := range list.Items {
		service, found, _ := unstructured.NestedMap(item.Object, "spec", "service")
		if !found {
			continue
		}
		group, _, _ := unstructured.NestedString(item.Object, "spec", "group")
		version, _, _ := unstructured.NestedString(item.Object, "spec", "version")
		c.Resources.aggregate(schema.GroupVersion{Group: group, Version: version}, fmt.Sprintf("%v/%v", service["namespace"], service["name"]))
	}
	return nil
}

// aggregate notes that another API server serves a group and version.
func (r *Resources) aggregate(version schema.GroupVersion, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[version] = server
}

// Aggregated returns the Service of the aggregated API server that serves a group and version, "namespace/name",
// or "" if the API server itself serves it.
func (r *Resources) Aggregated(version schema.GroupVersion) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.servers[version]
}
