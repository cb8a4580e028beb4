package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// Version returns the gitVersion of the API server. It repeats the request while the server is
// overloaded, but not if nothing listens there: the address can be wrong.
func (c *Client) Version(ctx context.Context) (string, error) {
	answer, err := c.version(ctx)
	if err != nil {
		return "", fmt.Errorf("reach API server at %s: %w", c.Host(), err)
	}
	if !answer.Allowed() {
		return "", fmt.Errorf("read version of API server at %s: %d %s: check the credentials", c.Host(), answer.Status.Code, answer.Status.Message)
	}
	var info version.Info
	data, err := json.Marshal(answer.Fields())
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err == nil && info.GitVersion == "" {
		err = errors.New("the response has no gitVersion")
	}
	if err != nil {
		return "", fmt.Errorf("read version of API server at %s: %w: is this a Kubernetes API server?", c.Host(), err)
	}
	return info.GitVersion, nil
}

// version reads the version of the API server. It repeats the request if the connection is closed
// without a response, or if the server is overloaded.
func (c *Client) version(ctx context.Context) (answer framework.Result, err error) {
	pause := c.begin()
	err = wait.ExponentialBackoffWithContext(ctx, pause, func(ctx context.Context) (bool, error) {
		var err error
		answer, err = c.Send(ctx, HTTPRequest{Method: http.MethodGet, Path: "/version"})
		pause.Steps--
		if pause.Steps > 0 && (utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)) {
			return false, nil
		}
		return pause.Steps == 0 || !Overloaded(answer.Status.Code), err
	})
	return answer, err
}

// Ping returns an error if the API server does not respond. Any status is a response.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.version(ctx)
	return err
}

// Overloaded reports whether an API server responds with a code because it has too much to do.
func Overloaded(code int32) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// Alive returns an error if the API server does not respond, or responds with a 5xx status: if it cannot read
// its storage, for instance. (An API server reads an object from the storage if the request has no
// resourceVersion.)
func (c *Client) Alive(ctx context.Context) error {
	answer, err := c.Send(ctx, HTTPRequest{Method: http.MethodGet, Path: "/api/v1/namespaces/default"})
	if err == nil && answer.Status.Code >= http.StatusInternalServerError {
		err = fmt.Errorf("read namespace default: %w: %d %s", framework.ErrNoResponse, answer.Status.Code, answer.Status.Message)
	}
	return err
}

// User returns the user of this client. It has no name if the API server does not return it.
func (c *Client) User(ctx context.Context) framework.User {
	reviews, err := authenticationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return framework.User{}
	}
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return framework.User{}
	}
	info := review.Status.UserInfo
	user := framework.User{Name: info.Username, UID: info.UID, Groups: info.Groups}
	for key, values := range info.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	return user
}

// HasControllers reports whether kube-controller-manager holds its Lease. It is false if the Lease
// cannot be read.
func (c *Client) HasControllers(ctx context.Context) bool {
	leases := Resource{GroupVersionResource: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespaced: true}
	list, err := c.objects(leases, "kube-system").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kube-controller-manager"})
	if err != nil {
		return false
	}
	lease := named(list, "kube-controller-manager")
	if lease == nil {
		return false
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder != ""
}

// Discover reads which kinds the API server serves.
func (c *Client) Discover(ctx context.Context) error {
	lists, err := c.ResourceLists(ctx)
	if err == nil {
		c.Resources.Add(lists...)
	}
	return err
}

// Discovery returns a client for discovery and the schemas of the API server, whose requests have a context.
func (c *Client) Discovery(ctx context.Context) (*discovery.DiscoveryClient, error) {
	own := *c.http
	own.Transport = inContext{ctx, c.http.Transport, semaphore.NewWeighted(parallelDiscovery)}
	return discovery.NewDiscoveryClientForConfigAndClient(c.config, &own)
}

// parallelDiscovery limits the number of concurrent requests: package discovery sends one for each group at once.
const parallelDiscovery = 32

// inContext gives requests a context, because the requests of package discovery have none.
type inContext struct {
	ctx   context.Context //nolint:containedctx // see above
	next  http.RoundTripper
	turns *semaphore.Weighted
}

// RoundTrip sends the request when fewer than parallelDiscovery are under way.
func (i inContext) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := i.turns.Acquire(i.ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other requests: %w", err)
	}
	defer i.turns.Release(1)
	return i.next.RoundTrip(request.WithContext(i.ctx))
}

// ResourceLists returns what the API server serves, as discovery does. A list is empty if the API server cannot
// say what is in it: a broken aggregated API makes only its own group fail.
func (c *Client) ResourceLists(ctx context.Context) ([]*metav1.APIResourceList, error) {
	discoverer, err := c.Discovery(ctx)
	if err != nil {
		return nil, err
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		err = ctx.Err()
		for version, why := range failed.Groups {
			if limit := (*LimitError)(nil); errors.As(why, &limit) {
				err = limit
			}
			lists = append(lists, &metav1.APIResourceList{GroupVersion: version.String()})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("discover resources of the API server: %w", withNoResponse(err))
	}
	return lists, nil
}

// metricsPath is the path of the metrics.
const metricsPath = "/metrics"

// Two metrics of an API server. featureMetric has one sample for each feature gate, and
// pluginMetric one for each admission plugin that was called, with operation and phase.
// See https://kubernetes.io/docs/reference/instrumentation/metrics/
const (
	featureMetric = "kubernetes_feature_enabled"
	pluginMetric  = "apiserver_admission_controller_admission_duration_seconds"
)

// FeatureGates returns the feature gates that the API server reports in its metrics,
// or nil if the metrics cannot be read.
func (c *Client) FeatureGates(ctx context.Context) map[string]bool {
	samples, err := c.Samples(ctx, featureMetric)
	if err != nil || len(samples) == 0 {
		return nil
	}
	gates := map[string]bool{}
	for _, gate := range samples {
		gates[gate.Labels["name"]] = gate.Value == 1
	}
	return gates
}

// CalledPlugins returns the names of the admission plugins that the API server called
// since its start, sorted.
func (c *Client) CalledPlugins(ctx context.Context) ([]string, error) {
	samples, err := c.Samples(ctx, pluginMetric)
	if err != nil {
		return nil, err
	}
	called := map[string]bool{}
	for _, plugin := range samples {
		called[plugin.Labels["name"]] = true
	}
	return slices.Sorted(maps.Keys(called)), nil
}

// Samples reads the samples of one metric. The error is a framework.ErrNotServed if the API server has no
// metrics.
func (c *Client) Samples(ctx context.Context, metric string) ([]framework.Sample, error) {
	all, err := c.Metrics(ctx, metric)
	return all[metric], err
}

// Metrics is Samples for several metrics, by name, which are read at once.
func (c *Client) Metrics(ctx context.Context, names ...string) (map[string][]framework.Sample, error) {
	text, err := c.rest.Get().AbsPath(metricsPath).SetHeader("Accept", "text/plain").Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return nil, &framework.NotServedError{Name: metricsPath}
	case err != nil:
		return nil, fmt.Errorf("read the metrics of the API server: %w", withNoResponse(err))
	}
	all := map[string][]framework.Sample{}
	for _, name := range names {
		if all[name], err = parseSamples(text, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// parseSamples gives the parser only the lines of one metric: an API server has some
// hundred thousand others.
func parseSamples(text []byte, metric string) ([]framework.Sample, error) {
	var lines []byte
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(metric)) {
			lines = append(lines, line...)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(lines))
	if err != nil {
		return nil, errors.Join(errors.New("parse the metrics of the API server"), err)
	}
	var out []framework.Sample
	for _, found := range families[metric].GetMetric() {
		labels := map[string]string{}
		for _, label := range found.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		value := found.GetGauge().GetValue() + found.GetCounter().GetValue() + found.GetUntyped().GetValue()
		sample := framework.Sample{Labels: labels, Value: value + float64(found.GetHistogram().GetSampleCount())}
		for _, bucket := range found.GetHistogram().GetBucket() {
			if bound := bucket.GetUpperBound(); !math.IsInf(bound, 1) {
				sample.Buckets = append(sample.Buckets, bound)
			}
		}
		out = append(out, sample)
	}
	return out, nil
}

// OpenAPI returns the OpenAPI v3 document of a group and version, as decoded JSON.
// See https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
func (c *Client) OpenAPI(ctx context.Context, of schema.GroupVersion) (map[string]any, error) {
	path := "/openapi/v3/apis/" + of.String()
	if of.Group == "" {
		path = "/openapi/v3/api/" + of.Version
	}
	text, err := c.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI of %s: %w", of, withNoResponse(err))
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the OpenAPI of %s: %w", of, err)
	}
	return document, nil
}

// Right is one action that a user must be allowed to do.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Name and Namespace restrict the right to one object or one namespace. Empty means
	// all.
	Name, Namespace string
	// Path is the path to read, for a right without a resource.
	Path string
}

// String is as in an error: "create pods/portforward", "impersonate groups
// system:masters", "update deployments.apps".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	text := cmp.Or(r.Verb, `""`) + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// parallelReviews limits the number of concurrent reviews.
const parallelReviews = 16

// Missing returns the rights that the user of this client does not have. It sends one review for each. If the API
// server does not answer such questions, no right is missing.
func (c *Client) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	missing := make([]bool, len(rights))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, right := range rights {
		group.Go(func() error {
			review, err := reviews.SelfSubjectAccessReviews().Create(limited, &authorizationv1.SelfSubjectAccessReview{Spec: right.question()}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("review the right to %s on API server at %s: %w", right, c.Host(), withNoResponse(err))
			}
			missing[i] = err == nil && !review.Status.Allowed
			return nil
		})
	}
	err = group.Wait()
	var found []Right
	for i, right := range rights {
		if missing[i] {
			found = append(found, right)
		}
	}
	return found, err
}

// question is the right in a SelfSubjectAccessReview.
func (r Right) question() authorizationv1.SelfSubjectAccessReviewSpec {
	if r.Path != "" {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: r.Verb, Path: r.Path}}
	}
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, Namespace: r.Namespace,
	}}
}
