// Package apiserver is the API server of a World, which responds to clients in this process.
//
// The objects are in the Store. A change is in the store and in the caches of informers before the
// client gets the response.
package apiserver

import (
	"bytes"
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
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Server carries out the requests of clients. Its methods are safe for concurrent use. All fields
// but Informers must
// be set.
type Server struct {
	Kinds *kinds.Registry
	Store *Store
	// Authorizer decides the reviews about authorization.
	Authorizer authorizer.Authorizer
	// Informers are the informers that fill their caches from this server.
	Informers Informers
}

// Request is one parsed request. Server.Parse makes it.
type Request struct {
	// Call is what the client requested. Its Err is guarded by the lock of the Store.
	Call *Call

	server  *Server
	objects *Store // what a list or watch reads
	http    *http.Request
	kind    *kinds.Kind
	query   url.Values
	body    []byte
	media   string                // media type of the body
	partial bool                  // the client requested only the metadata
	options *metav1.DeleteOptions // options of a delete; nil if it has none
	wrong   error                 // why the server refuses the request
}

// reply is a response: a JSON body, or a stream.
type reply struct {
	code   int
	body   []byte
	stream io.ReadCloser
}

// Parse parses a request. The error is an error of the connection. If the server refuses the
// request, Parse returns no error: Respond returns the refusal.
func (s *Server) Parse(r *http.Request) (*Request, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read body of %s %s: %w", r.Method, r.URL.Path, err)
		}
	}
	factory := apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(r)
	if err != nil {
		return nil, fmt.Errorf("understand %s %s: %w", r.Method, r.URL.Path, err)
	}
	request := s.newRequest(r, info, body)
	if info.IsResourceRequest {
		request.wrong = request.find()
	}
	return request, nil
}

func (s *Server) newRequest(r *http.Request, info *apirequest.RequestInfo, body []byte) *Request {
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
	return &Request{
		Call: call, server: s, objects: s.Store, http: r, query: query, body: body, media: media,
		partial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
}

// find finds the kind of a request for a resource, and decodes its body.
func (r *Request) find() error {
	r.kind = r.server.Kinds.ByResource(r.Call.Resource)
	if r.kind == nil {
		return notServed(r.Call.Verb, r.Call.Resource)
	}
	if r.Call.Verb == "patch" {
		r.Call.Patch = r.body
		return nil
	}
	return r.decode()
}

// Respond carries out a request and returns the response for the client, on the client's goroutine.
// If err is not nil, Respond does not carry out the request, and err is its outcome. An error with
// a Status becomes the response; Respond returns any other error, as an error of the connection. In
// both cases the error is the Err of the Call.
func (r *Request) Respond(err error) (*http.Response, error) {
	if err == nil {
		err = r.wrong
	}
	var answer reply
	if err == nil {
		answer, err = r.answer()
	}
	if err != nil {
		r.server.Store.Lock()
		r.Call.Err = err
		r.server.Store.Unlock()
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return nil, err
		}
		answer = statusReply(status.Status())
	}
	return answer.response(r.http), nil
}

func notServed(verb string, gvr schema.GroupVersionResource) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, verb, gvr.GroupResource(), "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource %s: the World knows no such one, see fakes.WithScheme and fakes.WithMappings", gvr)
	return err
}

// answer carries out a request.
func (r *Request) answer() (reply, error) {
	if r.kind == nil {
		return r.discover()
	}
	switch r.Call.Verb {
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
		return reply{}, apierrors.NewMethodNotSupported(r.kind.GVR.GroupResource(), r.Call.Verb)
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
