package fakes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// roundTripper responds to a client's requests on the client's goroutine.
type roundTripper struct {
	w *World
	// test is true for a client of the test itself.
	test bool
}

// request is one parsed request.
type request struct {
	w       *World
	ctx     context.Context //nolint:containedctx // a request is a value with a context
	call    *Call
	kind    *kind
	query   url.Values
	body    []byte
	header  http.Header
	media   string // of the body
	partial bool   // the client requested only the metadata
	object  runtime.Object
}

// reply is a response: a JSON body, or a stream.
type reply struct {
	code   int
	body   []byte
	stream io.ReadCloser
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	request, wrong, err := t.w.parse(r)
	if err != nil {
		return nil, err
	}
	if t.test {
		defer t.w.waitForHandlers()
		err = request.ctx.Err()
	} else {
		t.w.mu.Lock()
		t.w.calls = append(t.w.calls, request.call)
		t.w.calling.raise()
		call := *request.call
		t.w.mu.Unlock()
		err = t.w.suffer(request.ctx, call)
	}
	if err == nil {
		err = wrong
	}
	var answer reply
	if err == nil {
		answer, err = request.answer()
	}
	if err != nil {
		t.w.mu.Lock()
		request.call.Err = err
		t.w.mu.Unlock()
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return nil, err
		}
		answer = statusReply(status.Status())
	}
	return answer.response(r), nil
}

// parse parses a request. wrong is the error of a request that the server refuses. err is one of
// the connection.
func (w *World) parse(r *http.Request) (request *request, wrong, err error) {
	var body []byte
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("read body of %s %s: %w", r.Method, r.URL.Path, err)
		}
	}
	factory := apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(r)
	if err != nil {
		return nil, nil, fmt.Errorf("understand %s %s: %w", r.Method, r.URL.Path, err)
	}
	request = newRequest(w, r, info, body)
	if !info.IsResourceRequest {
		return request, nil, nil
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	request.kind = w.kinds.byResource(gvr)
	if request.kind == nil {
		return request, notServed(info.Verb, gvr), nil
	}
	if request.call.Verb == "patch" {
		request.call.Patch = body
		return request, nil, nil
	}
	return request, request.decode(), nil
}

func newRequest(w *World, r *http.Request, info *apirequest.RequestInfo, body []byte) *request {
	call := &Call{Verb: info.Verb, Context: r.Context()}
	if !info.IsResourceRequest {
		call.Path = info.Path
	} else {
		call.Resource = schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
		call.Subresource, call.Namespace, call.Name = info.Subresource, info.Namespace, info.Name
		if info.Resource == "namespaces" && info.APIGroup == "" {
			call.Namespace = ""
		}
	}
	query := r.URL.Query()
	call.DryRun = slices.Contains(query["dryRun"], metav1.DryRunAll)
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return &request{
		w: w, ctx: r.Context(), call: call, query: query, body: body, header: r.Header, media: media,
		partial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
}

func notServed(verb string, gvr schema.GroupVersionResource) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, verb, gvr.GroupResource(), "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource %s: the World knows no such one, see fakes.WithScheme and fakes.WithMappings", gvr)
	return err
}

// answer carries out a request.
func (r *request) answer() (reply, error) {
	if r.kind == nil {
		return r.discover()
	}
	switch r.call.Verb {
	case "get":
		return r.get()
	case "list":
		return r.list()
	case "watch":
		return r.watch()
	case "create":
		return r.create()
	case "update":
		return r.update()
	case "patch":
		return r.patch()
	case "delete":
		return r.delete()
	case "deletecollection":
		return r.deleteCollection()
	default:
		return reply{}, apierrors.NewMethodNotSupported(r.kind.gvr.GroupResource(), r.call.Verb)
	}
}

func (a reply) response(r *http.Request) *http.Response {
	body := a.stream
	length := int64(-1)
	if body == nil {
		body = io.NopCloser(bytes.NewReader(a.body))
		length = int64(len(a.body))
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", a.code, http.StatusText(a.code)),
		StatusCode: a.code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body:          body,
		ContentLength: length,
		Request:       r,
	}
}

func statusReply(status metav1.Status) reply {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	body, err := json.Marshal(status)
	if err != nil {
		return reply{code: http.StatusInternalServerError}
	}
	return reply{code: int(status.Code), body: body}
}

func jsonReply(code int, object any) (reply, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return reply{}, apierrors.NewInternalError(fmt.Errorf("encode response: %w", err))
	}
	return reply{code: code, body: body}, nil
}
