package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// requestTimeout limits one request. The API server's own limit is 34 s for most
// requests (k8s.io/apiserver/pkg/endpoints/handlers).
const requestTimeout = 60 * time.Second

// HTTPRequest is a request under test in its HTTP form.
type HTTPRequest struct {
	// Method and Path are required. Path is not escaped.
	Method, Path string
	Query        url.Values
	Body         []byte
	// ContentType is the media type of Body.
	ContentType string
	// User is the user to impersonate. Nil impersonates no user.
	User *framework.User
}

// DryRun returns the creation of an object as a dry run.
func DryRun(of schema.GroupVersionResource, namespace string, object map[string]any) HTTPRequest {
	body, _ := json.Marshal(object) // it is JSON
	return HTTPRequest{
		Method: http.MethodPost, Path: URLPath(of, namespace, "", ""), Query: url.Values{"dryRun": {metav1.DryRunAll}},
		Body: body, ContentType: runtime.ContentTypeJSON,
	}
}

// Send sends a request once and returns the response, whatever its status. The error
// is a framework.ErrNoResponse, unless ctx was cancelled, or a LimitError. The result has the audit ID and the
// times also then.
func (c *Client) Send(ctx context.Context, r HTTPRequest) (framework.Result, error) {
	ctx, cancel := context.WithTimeout(once(ctx), requestTimeout)
	defer cancel()
	result := framework.Result{AuditID: uuid.NewString()}
	request := c.rest.Verb(r.Method).AbsPath(r.Path).MaxRetries(0)
	for name, values := range r.header(result.AuditID) {
		request.SetHeader(name, values...)
	}
	for name, values := range r.Query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	if len(r.Body) > 0 {
		request.Body(r.Body)
	}
	result.Started = time.Now()
	response := request.Do(ctx)
	result.Finished = time.Now()
	var code int
	response.StatusCode(&code)
	body, err := response.Raw()
	if code == 0 {
		return result, fmt.Errorf("%s %s: %w", r.Method, r.Path, withNoResponse(err))
	}
	for _, warning := range response.Warnings() {
		result.Warnings = append(result.Warnings, warning.Text)
	}
	decode(&result, code, body)
	return result, nil
}

func (r HTTPRequest) header(auditID string) http.Header {
	header := http.Header{"Accept": {"application/json"}, "Audit-Id": {auditID}}
	if r.ContentType != "" && len(r.Body) > 0 {
		header.Set("Content-Type", r.ContentType)
	}
	if r.User == nil {
		return header
	}
	// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
	header.Set("Impersonate-User", r.User.Name)
	if r.User.UID != "" {
		header.Set("Impersonate-Uid", r.User.UID)
	}
	for _, group := range r.User.Groups {
		header.Add("Impersonate-Group", group)
	}
	for key, values := range r.User.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+url.PathEscape(key), value)
		}
	}
	return header
}

// decode sets Status and Object from a response. A body that is not JSON, of a
// proxied backend for instance, becomes the message of the Status.
func decode(result *framework.Result, code int, body []byte) {
	result.Status = metav1.Status{Status: metav1.StatusSuccess}
	var object map[string]any
	if err := utiljson.Unmarshal(body, &object); err != nil {
		result.Status.Message = string(body[:min(len(body), 1024)])
		if code >= http.StatusBadRequest {
			result.Status.Status = metav1.StatusFailure
		}
	}
	if object["kind"] == "Status" && object["apiVersion"] == "v1" {
		var status metav1.Status
		if json.Unmarshal(body, &status) == nil {
			result.Status = status
		}
	}
	if object != nil && code < http.StatusBadRequest {
		result.Object = &unstructured.Unstructured{Object: object}
	}
	result.Status.Code = int32(code) //nolint:gosec // an HTTP status code has three digits
}

// noCodec is the serializer of a REST client that only reads raw bodies.
type noCodec struct{}

// SupportedMediaTypes has the empty type, which stands for any: the REST client drops a
// response whose type it does not know.
func (noCodec) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{Serializer: unstructured.UnstructuredJSONScheme}}
}

func (noCodec) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return encoder
}

func (noCodec) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

var _ runtime.NegotiatedSerializer = noCodec{}

// URLPath returns the path of a resource, or of one object if name is not empty.
func URLPath(res schema.GroupVersionResource, namespace, name, subresource string) string {
	path := "/apis/" + res.Group + "/" + res.Version
	if res.Group == "" {
		path = "/api/" + res.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + res.Resource
	if name != "" {
		path += "/" + name
	}
	if subresource != "" {
		path += "/" + subresource
	}
	return path
}

// freshConnections is how many requests in a row SendToAll sends on connections of their own to a cluster with several
// API servers. A load balancer that chooses one of two at random chooses the same for all of them once in 500,000 times.
const freshConnections = 20

// FindReplicas finds out from the EndpointSlices of the Service kubernetes whether the cluster has several API servers
// behind the address of the client, and returns a message if it does. SendToAll then sends on new connections too. If
// there is only one API server, or the EndpointSlices cannot be read, the message is empty, and SendToAll is Send. Call it before
// other methods.
func (c *Client) FindReplicas(ctx context.Context) (message string) {
	count, err := c.Replicas(ctx)
	if err != nil || count < 2 {
		return ""
	}
	if c.fresh, err = c.onNewConnections(); err != nil {
		return ""
	}
	return fmt.Sprintf("the cluster has %d API servers: what is installed counts as effective when %d requests in a row on new connections to %s find it effective",
		count, freshConnections, c.Host())
}

// Replicas returns how many API servers are ready, as the EndpointSlices of the Service kubernetes say.
func (c *Client) Replicas(ctx context.Context) (int, error) {
	reader, err := discoveryclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return 0, err
	}
	list, err := reader.EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return 0, withNoResponse(err)
	}
	return readyEndpoints(list.Items), nil
}

// onNewConnections returns a client that sends each request on a connection of its own.
func (c *Client) onNewConnections() (*Client, error) {
	config := WithoutSharing(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return closing{next} })
	return New(config)
}

// closing is a transport that closes each connection after one request.
type closing struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (c closing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Close = true
	return c.next.RoundTrip(request)
}

// readyEndpoints returns how many addresses are ready.
func readyEndpoints(all []discoveryv1.EndpointSlice) int {
	count := 0
	for _, slice := range all {
		if slice.Labels[discoveryv1.LabelServiceName] != "kubernetes" {
			continue // the API server ignores selectors
		}
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				count += len(endpoint.Addresses)
			}
		}
	}
	return count
}

// SendToAll sends a request to the API server. If the cluster has several, it then sends it on new connections, until
// one of the responses lacks something. Lacks returns what a response lacks, or "".
func (c *Client) SendToAll(ctx context.Context, r HTTPRequest, lacks func(framework.Result) string) (answer framework.Result, missing string, err error) {
	if answer, err = c.Send(ctx, r); err != nil {
		return answer, "", err
	}
	missing = lacks(answer)
	for n := 0; c.fresh != nil && missing == "" && n < freshConnections; n++ {
		if answer, err = c.fresh.Send(ctx, r); err != nil {
			return answer, "", err
		}
		if missing = lacks(answer); missing != "" {
			missing += ", on a new connection"
		}
	}
	return answer, missing, nil
}
