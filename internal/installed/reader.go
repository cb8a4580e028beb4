package installed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// reader reads objects, each once.
type reader struct {
	client    dynamic.Interface
	discovery *discovery.DiscoveryClient
	seen      []string
	objects   []map[string]any
}

func newReader(config *rest.Config) (*reader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &reader{client: client, discovery: known}, nil
}

// get adds a cluster-scoped object, if it exists.
func (r *reader) get(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	key := resource.String() + name
	if slices.Contains(r.seen, key) {
		return nil
	}
	r.seen = append(r.seen, key)
	object, err := r.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		err = rightsMissing(err, fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [get]}", resource.Group, resource.Resource))
		return fmt.Errorf("get %s %s: %w", resource.Resource, name, err)
	}
	r.objects = append(r.objects, object.Object)
	return nil
}

// definition adds the CustomResourceDefinition of a sample, if its kind is not Kubernetes' own.
func (r *reader) definition(ctx context.Context, sample map[string]any) error {
	kind := (&unstructured.Unstructured{Object: sample}).GroupVersionKind()
	if scheme.Scheme.Recognizes(kind) || kind.Kind == "" {
		return nil
	}
	list, err := r.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the resources of %s: %w", kind.GroupVersion(), err)
	}
	for _, each := range list.APIResources {
		if each.Kind == kind.Kind && !strings.Contains(each.Name, "/") {
			return r.get(ctx, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, each.Name+"."+kind.Group)
		}
	}
	return nil
}
