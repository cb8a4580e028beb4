package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// fieldManager is the field manager of an apply that sets none. Apply requires one.
const fieldManager = "admissiontest"

// compose returns the HTTP form of a Request.
func compose(resources *client.Resources, request client.Request) (client.HTTPRequest, error) {
	if set := request.InProcess.FieldsSet(); len(set) > 0 {
		return client.HTTPRequest{}, fmt.Errorf("%s: Request.InProcess.%s: %w: an API server computes it itself", request, set[0], framework.ErrFieldNotSupported)
	}
	if err := resources.ServesSubresource(request.Resource, request.Subresource); err != nil {
		return client.HTTPRequest{}, err
	}
	composed := client.HTTPRequest{Query: url.Values{}, User: request.User}
	for key, values := range request.HTTP.Query {
		composed.Query[key] = append([]string(nil), values...)
	}
	if request.DryRun {
		composed.Query.Set("dryRun", metav1.DryRunAll)
	}
	name, namespace := request.Name, request.Namespace
	if request.Verb == framework.VerbCreate && request.Subresource == "" {
		name = "" // it is in the body
	}
	if !request.Resource.Namespaced {
		namespace = ""
	}
	composed.Path = client.URLPath(request.Resource.GroupVersionResource, namespace, name, request.Subresource) + request.HTTP.ProxyPath
	if err := setBody(&composed, request.Request); err != nil {
		return client.HTTPRequest{}, fmt.Errorf("%s: %w", request, err)
	}
	if request.HTTP.ContentType != "" {
		composed.ContentType = request.HTTP.ContentType
	}
	return composed, checkUsed(request.Request)
}

// setBody sets method, body and content type.
func setBody(composed *client.HTTPRequest, request framework.Request) (err error) {
	composed.ContentType = runtime.ContentTypeJSON
	switch request.Verb {
	case framework.VerbGet, framework.VerbList:
		composed.Method = http.MethodGet
	case framework.VerbCreate:
		composed.Method = http.MethodPost
		composed.Body, err = bodyOf(request)
	case framework.VerbUpdate:
		composed.Method = http.MethodPut
		composed.Body, err = bodyOf(request)
	case framework.VerbApply:
		composed.Method, composed.ContentType = http.MethodPatch, "application/apply-patch+yaml"
		composed.Body, err = bodyOf(request)
		if composed.Query.Get("fieldManager") == "" {
			composed.Query.Set("fieldManager", fieldManager)
		}
	case framework.VerbPatch:
		composed.Method, composed.Body, composed.ContentType = http.MethodPatch, request.HTTP.Patch, string(request.HTTP.PatchType)
		if request.HTTP.RawBody != nil {
			composed.Body = request.HTTP.RawBody
		}
	case framework.VerbDelete, framework.VerbDeleteCollection:
		composed.Method, composed.Body = http.MethodDelete, request.HTTP.RawBody
		if request.HTTP.DeleteOptions != nil {
			composed.Body, err = json.Marshal(request.HTTP.DeleteOptions)
		}
	case framework.VerbConnect:
		if composed.Method = request.HTTP.Method; composed.Method == "" {
			composed.Method = http.MethodPost
		}
	default:
		err = fmt.Errorf("unknown verb %q", request.Verb)
	}
	return err
}

// bodyOf returns the raw body of a Request, or its object in JSON.
func bodyOf(request framework.Request) ([]byte, error) {
	if request.HTTP.RawBody != nil || request.Object == nil {
		return request.HTTP.RawBody, nil
	}
	if request.Object.GetObjectKind().GroupVersionKind().Kind == "" {
		return nil, fmt.Errorf("encode object: a %T has no apiVersion and kind, which the API server needs: set its TypeMeta", request.Object)
	}
	return json.Marshal(request.Object)
}

// checkUsed returns an error for a field that has no effect with the verb of the
// Request.
func checkUsed(request framework.Request) error {
	writes := request.Verb == framework.VerbCreate || request.Verb == framework.VerbUpdate || request.Verb == framework.VerbApply
	deletes := request.Verb == framework.VerbDelete || request.Verb == framework.VerbDeleteCollection
	patches, connects := request.Verb == framework.VerbPatch, request.Verb == framework.VerbConnect
	for _, field := range []struct {
		name  string
		set   bool
		verbs bool
	}{
		{"Object", request.Object != nil, writes},
		{"HTTP.RawBody", request.HTTP.RawBody != nil, writes || patches || deletes && request.HTTP.DeleteOptions == nil},
		{"HTTP.ContentType", request.HTTP.ContentType != "", writes || patches || deletes},
		{"HTTP.Patch", request.HTTP.Patch != nil, patches},
		{"HTTP.PatchType", request.HTTP.PatchType != "", patches},
		{"HTTP.DeleteOptions", request.HTTP.DeleteOptions != nil, deletes},
		{"HTTP.Method", request.HTTP.Method != "", connects},
		{"HTTP.ProxyPath", request.HTTP.ProxyPath != "", connects},
	} {
		if field.set && !field.verbs {
			return fmt.Errorf("%s: Request.%s: %w: it has no effect on a request of verb %q", request, field.name, framework.ErrFieldNotSupported, request.Verb)
		}
	}
	return nil
}
