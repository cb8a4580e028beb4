package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	"github.com/admissiontest/admissiontest/internal/shipped"
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

// ReadAdmission returns what a cluster has of configurations, policies, bindings, Namespaces, CustomResourceDefinitions and
// params: what Why needs. More are the configurations, policies and bindings that are judged as if they were there.
func ReadAdmission(ctx context.Context, config *rest.Config, more []shipped.Manifest) (*Snapshot, error) {
	r, err := newReader(ctx, config, more)
	if err != nil {
		return nil, err
	}
	return r.snapshot, nil
}

// ReadCluster is ReadAdmission, and returns what is behind the webhooks, and DaemonSets, too: what Judge needs. It
// returns an error if the account may not list one of the kinds.
func ReadCluster(ctx context.Context, config *rest.Config, more []shipped.Manifest) (*Snapshot, error) {
	r, err := newReader(ctx, config, more)
	if err != nil {
		return nil, err
	}
	if err := r.list(ctx, "", "daemonsets.apps"); err != nil {
		return nil, err
	}
	var namespaces []string
	w, _ := newWorld(ctx, Input{Manifests: more, Cluster: r.snapshot}) // what cannot be read is an error of Judge
	for _, b := range w.backends {
		namespaces = append(namespaces, b.namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		if err := r.list(ctx, namespace, "services", "pods", "endpointslices.discovery.k8s.io", "deployments.apps", "statefulsets.apps", "poddisruptionbudgets.policy", "horizontalpodautoscalers.autoscaling"); err != nil {
			return nil, err
		}
	}
	return r.snapshot, nil
}

// newReader reads what ReadAdmission returns.
func newReader(ctx context.Context, config *rest.Config, more []shipped.Manifest) (*reader, error) {
	config = ReadOnly(config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	r := &reader{client: client, snapshot: &Snapshot{}}
	if err := r.discover(config); err != nil {
		return nil, err
	}
	const group = "." + admissionregistrationv1.GroupName
	err = r.list(ctx, "", "mutatingwebhookconfigurations"+group, "validatingwebhookconfigurations"+group, "validatingadmissionpolicies"+group, "validatingadmissionpolicybindings"+group,
		"mutatingadmissionpolicies"+group, "mutatingadmissionpolicybindings"+group, "namespaces", "customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return nil, err
	}
	w, _ := newWorld(ctx, Input{Manifests: more, Cluster: r.snapshot}) // what cannot be read is an error of Judge
	return r, r.params(ctx, w.policies)
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

// list adds the objects of resources, in all namespaces for "".
func (r *reader) list(ctx context.Context, namespace string, resources ...string) error {
	for _, name := range resources {
		resource := schema.ParseGroupResource(name)
		served := r.served.Find(resource.Group, resource.Resource)
		if len(served) == 0 {
			continue
		}
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return r.client.Resource(served[0].GroupVersionResource).Namespace(namespace).List(ctx, options)
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			unstructured.RemoveNestedField(fields, "metadata", "managedFields")
			r.snapshot.Objects = append(r.snapshot.Objects, fields)
			return err
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("list %s: %w", resource, err)
		}
	}
	return nil
}

// params lists the objects of the paramKinds of policies.
func (r *reader) params(ctx context.Context, policies []*policy) error {
	seen := map[string]bool{}
	for _, policy := range policies {
		if policy.spec.ParamKind == nil {
			continue
		}
		kind := schema.FromAPIVersionAndKind(policy.spec.ParamKind.APIVersion, policy.spec.ParamKind.Kind)
		param := r.served.Of(kind.GroupKind().WithVersion(""))
		if param == nil || seen[param.GroupResource().String()] {
			continue
		}
		seen[param.GroupResource().String()] = true
		if err := r.list(ctx, "", param.GroupResource().String()); err != nil {
			return err
		}
	}
	return nil
}
