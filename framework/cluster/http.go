package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// answerLimit bounds what is read of one answer.
const answerLimit = 64 << 20

// requestLimit is how long one request may take; the API server's own cap is 34 s
// for most (k8s.io/apiserver/pkg/endpoints/handlers).
const requestLimit = 60 * time.Second

// call is one HTTP request to the API server.
type call struct {
	method, path string
	query        url.Values
	body         []byte
	contentType  string
	// accept is the form of the answer. Empty is JSON.
	accept string
	user   *framework.User
}

// Do sends one Request. See framework.Target.
func (t *Target) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	c, err := t.compose(request)
	if err != nil {
		return framework.Result{}, err
	}
	return t.send(ctx, c)
}

// compose turns a Request into its HTTP form.
func (t *Target) compose(request framework.Request) (call, error) {
	res, err := t.resources.of(request.Kind)
	if err != nil {
		return call{}, err
	}
	c := call{query: url.Values{}, user: request.User}
	for key, values := range request.Options {
		c.query[key] = append([]string(nil), values...)
	}
	if request.DryRun {
		c.query.Set("dryRun", metav1.DryRunAll)
	}
	named := request.Name != "" && (request.Verb != framework.VerbCreate || request.Subresource != "")
	c.path = urlOf(res, request, named)
	if err := c.setBody(request); err != nil {
		return call{}, err
	}
	return c, nil
}

func urlOf(res resource, request framework.Request, named bool) string {
	parts := []string{"/apis", res.Group, res.Version}
	if res.Group == "" {
		parts = []string{"/api", res.Version}
	}
	if res.Namespaced && request.Namespace != "" {
		parts = append(parts, "namespaces", request.Namespace)
	}
	parts = append(parts, res.Resource)
	if named {
		parts = append(parts, request.Name)
	}
	if request.Subresource != "" {
		parts = append(parts, request.Subresource)
	}
	return path.Join(parts...) + request.ProxyPath
}

// encode returns the JSON of a request's object, which has to say what it is.
func encode(object runtime.Object) ([]byte, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind == "" {
		return nil, fmt.Errorf("encode object: a %T says neither apiVersion nor kind, which the API server needs: set its TypeMeta", object)
	}
	return json.Marshal(object)
}

func (c *call) setBody(request framework.Request) error {
	var err error
	object := func() {
		if c.body = request.RawBody; c.body == nil && request.Object != nil {
			c.body, err = encode(request.Object)
		}
		c.contentType = "application/json"
	}
	switch request.Verb {
	case framework.VerbGet, framework.VerbList:
		c.method = http.MethodGet
	case framework.VerbCreate:
		c.method = http.MethodPost
		object()
	case framework.VerbUpdate:
		c.method = http.MethodPut
		object()
	case framework.VerbApply:
		c.method = http.MethodPatch
		object()
		c.contentType = "application/apply-patch+yaml"
		if c.query.Get("fieldManager") == "" {
			c.query.Set("fieldManager", "admissiontest")
		}
	case framework.VerbPatch:
		c.method, c.body, c.contentType = http.MethodPatch, request.Patch, string(request.PatchType)
	case framework.VerbDelete, framework.VerbDeleteCollection:
		c.method = http.MethodDelete
		if request.DeleteOptions != nil {
			c.body, err = json.Marshal(request.DeleteOptions)
			c.contentType = "application/json"
		} else if request.RawBody != nil {
			object()
		}
	case framework.VerbConnect:
		if c.method = request.Method; c.method == "" {
			c.method = http.MethodPost
		}
	default:
		return fmt.Errorf("compose request: unknown verb %q", request.Verb)
	}
	if request.ContentType != "" {
		c.contentType = request.ContentType
	}
	return err
}

// send carries out a call and reads its answer.
func (t *Target) send(ctx context.Context, c call) (framework.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	target := *t.base
	// The path is escaped already where a name needs it; Kubernetes names never do.
	target.Path = strings.TrimSuffix(t.base.Path, "/") + c.path
	target.RawQuery = c.query.Encode()
	httpRequest, err := http.NewRequestWithContext(ctx, c.method, target.String(), bytes.NewReader(c.body))
	if err != nil {
		return framework.Result{}, fmt.Errorf("compose request %s %s: %w", c.method, c.path, err)
	}
	result := framework.Result{AuditID: uuid.NewString()}
	setHeaders(httpRequest.Header, c, result.AuditID)
	result.Started = time.Now()
	response, err := t.client.Do(httpRequest)
	if err != nil {
		return framework.Result{}, fmt.Errorf("send %s %s: %w: %w", c.method, c.path, framework.ErrLost, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	result.Finished = time.Now()
	if err != nil {
		return framework.Result{}, fmt.Errorf("read answer to %s %s: %w: %w", c.method, c.path, framework.ErrLost, err)
	}
	warnings, _ := utilnet.ParseWarningHeaders(response.Header.Values("Warning"))
	for _, warning := range warnings {
		result.Warnings = append(result.Warnings, warning.Text)
	}
	decode(&result, response.StatusCode, body)
	return result, nil
}

func setHeaders(header http.Header, c call, auditID string) {
	header.Set("Accept", "application/json")
	if c.accept != "" {
		header.Set("Accept", c.accept)
	}
	header.Set("Audit-ID", auditID)
	if c.contentType != "" && len(c.body) > 0 {
		header.Set("Content-Type", c.contentType)
	}
	if c.user == nil {
		return
	}
	// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
	header.Set("Impersonate-User", c.user.Name)
	if c.user.UID != "" {
		header.Set("Impersonate-Uid", c.user.UID)
	}
	for _, group := range c.user.Groups {
		header.Add("Impersonate-Group", group)
	}
	for key, values := range c.user.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+url.PathEscape(key), value)
		}
	}
}

// decode fills a Result from an answer. A body that is no JSON is an answer too
// (a proxied backend's, say): its text becomes the Status message.
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
	if object != nil && (code < http.StatusBadRequest) {
		result.Object = &unstructured.Unstructured{Object: object}
	}
	result.Status.Code = int32(code) //nolint:gosec // an HTTP status code has three digits
}
