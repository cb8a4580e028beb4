package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// ErrReadOnly is the error of a request that is neither a get nor a list.
var ErrReadOnly = errors.New("doctor only reads from a cluster")

// readOnly is a transport that only sends GET requests that end.
type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Query().Get("watch") != "" {
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrReadOnly)
	}
	return t.next.RoundTrip(request)
}

// ReadOnly returns a copy of a config whose clients can only get and list.
func ReadOnly(config *rest.Config) *rest.Config {
	safe := rest.CopyConfig(config)
	safe.QPS, safe.Burst = 100, 200
	safe.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	return safe
}

// reader reads one Snapshot.
type reader struct {
	client   dynamic.Interface
	snapshot *Snapshot
	served   *kinds.Catalogue
}

// ReadCluster returns what a cluster has. More are the configurations, policies and bindings that are judged as if they were there: the
// namespaces and params that they name are read too. A kind that the account may not list is in Snapshot.Missing. Any other
// error ends ReadCluster.
func ReadCluster(ctx context.Context, config *rest.Config, more []map[string]any) (*Snapshot, error) {
	config = ReadOnly(config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	r := &reader{client: client, snapshot: &Snapshot{Missing: map[string]string{}}}
	if err := r.discover(config); err != nil {
		return nil, err
	}
	const admission = "admissionregistration.k8s.io"
	for _, resource := range []schema.GroupResource{
		{Group: admission, Resource: "mutatingwebhookconfigurations"}, {Group: admission, Resource: "validatingwebhookconfigurations"},
		{Group: admission, Resource: "validatingadmissionpolicies"}, {Group: admission, Resource: "validatingadmissionpolicybindings"},
		{Group: admission, Resource: "mutatingadmissionpolicies"}, {Group: admission, Resource: "mutatingadmissionpolicybindings"},
		{Resource: "namespaces"}, {Resource: "nodes"}, {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, {Group: "apps", Resource: "daemonsets"},
	} {
		if err := r.list(ctx, resource, ""); err != nil {
			return nil, err
		}
	}
	judged := slices.Concat(more, r.snapshot.Objects)
	for _, namespace := range backendNamespaces(judged) {
		for _, resource := range []schema.GroupResource{
			{Resource: "services"}, {Resource: "pods"}, {Group: "discovery.k8s.io", Resource: "endpointslices"}, {Group: "apps", Resource: "deployments"},
			{Group: "apps", Resource: "statefulsets"}, {Group: "policy", Resource: "poddisruptionbudgets"}, {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
		} {
			if err := r.list(ctx, resource, namespace); err != nil {
				return nil, err
			}
		}
	}
	return r.snapshot, r.params(ctx, judged)
}

// discover reads the version and the resources of the API server.
func (r *reader) discover(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of the API server: %w", err)
	}
	r.snapshot.Minor, _ = strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	_, lists, err := client.ServerGroupsAndResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &failed): // an aggregated API server does not answer
		r.snapshot.Incomplete = true
	case err != nil:
		return fmt.Errorf("read the resources of the API server: %w", err)
	}
	r.snapshot.Resources, r.served = lists, kinds.NewCatalogue(lists)
	return nil
}

// pageSize is the number of objects of a page. A CustomResourceDefinition can have a megabyte.
func pageSize(resource string) int64 {
	if resource == "customresourcedefinitions" {
		return 50
	}
	return 500
}

// list adds the objects of a resource, in all namespaces for "".
func (r *reader) list(ctx context.Context, resource schema.GroupResource, namespace string) error {
	served := r.served.Find(resource.Group, resource.Resource)
	if len(served) == 0 {
		return nil
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.client.Resource(served[0].GroupVersionResource).Namespace(namespace).List(ctx, options)
	})
	pages.PageSize, pages.FullListIfExpired = pageSize(resource.Resource), true
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("got a %T, want an object", item)
		}
		unstructured.RemoveNestedField(one.Object, "metadata", "managedFields")
		if resource.Resource == "customresourcedefinitions" {
			withoutSchemas(one.Object)
		}
		r.snapshot.Objects = append(r.snapshot.Objects, one.Object)
		return nil
	})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		r.missing(served[0].Kind.Kind, resource, namespace)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("list %s: %w", resource, err)
	}
	return nil
}

// missing records that the account may not list a resource.
func (r *reader) missing(kind string, resource schema.GroupResource, namespace string) {
	key := schema.GroupKind{Group: resource.Group, Kind: kind}.String()
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	r.snapshot.Missing[key] = fmt.Sprintf("the account may not list %s%s: it needs the rule {apiGroups: [%q], resources: [%s], verbs: [list]}", resource.Resource, where, resource.Group, resource.Resource)
}

// withoutSchemas removes the schemas of a CustomResourceDefinition, which are large.
func withoutSchemas(crd map[string]any) {
	versions, _, _ := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	list, _ := versions.([]any)
	for _, item := range list {
		if version, ok := item.(map[string]any); ok {
			delete(version, "schema")
		}
	}
	unstructured.RemoveNestedField(crd, "metadata", "annotations")
}

// backendNamespaces returns the namespaces of the Services of webhooks.
func backendNamespaces(objects []map[string]any) []string {
	var all []string
	for _, object := range objects {
		webhooks, _ := object["webhooks"].([]any)
		for _, item := range webhooks {
			fields, _ := item.(map[string]any)
			namespace, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "namespace")
			if namespace != "" && !slices.Contains(all, namespace) {
				all = append(all, namespace)
			}
		}
	}
	slices.Sort(all)
	return all
}

// params lists the objects of the paramKinds of policies.
func (r *reader) params(ctx context.Context, objects []map[string]any) error {
	seen := map[schema.GroupResource]bool{}
	for _, object := range objects {
		apiVersion, _, _ := unstructured.NestedString(object, "spec", "paramKind", "apiVersion")
		kind, _, _ := unstructured.NestedString(object, "spec", "paramKind", "kind")
		if kind == "" {
			continue
		}
		if param := r.served.OfGroupKind(schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()); param != nil && !seen[param.GroupResource()] {
			seen[param.GroupResource()] = true
			if err := r.list(ctx, param.GroupResource(), ""); err != nil {
				return err
			}
		}
	}
	return nil
}
