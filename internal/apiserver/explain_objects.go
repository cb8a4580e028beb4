package apiserver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// readObjects sets the objects of a request of which no Hook saw a call: from the request, from the
// response and from the API server. Defaults that the API server sets and changes by webhooks are
// missing in the new object of a request that was refused.
func (a *asked) readObjects(ctx context.Context, request framework.Request, result framework.Result, out *reach.Request) {
	if out.Operation == "CONNECT" {
		out.Object = map[string]any{"apiVersion": out.Kind.GroupVersion().String(), "kind": out.Kind.Kind}
		return
	}
	sent := (framework.Result{Object: request.Object}).Fields()
	if request.Verb == framework.VerbApply && !result.Allowed() && a.missing(ctx, *out) {
		out.Operation, out.Object = "CREATE", sent
		return
	}
	if out.Operation != "DELETE" && result.Allowed() && (&unstructured.Unstructured{Object: result.Fields()}).GroupVersionKind() == out.Kind {
		out.Object = result.Fields()
	}
	if out.Operation != "CREATE" {
		var err error
		if out.OldObject, err = a.oldObject(ctx, *out); err != nil {
			out.NotKnown = "the old object is unknown: " + err.Error()
			return
		}
	}
	switch {
	case out.Object != nil || out.Operation == "DELETE":
	case request.Verb == framework.VerbPatch:
		out.NotKnown = "only the API server applies the patch"
	case sent != nil && request.Verb != framework.VerbApply:
		out.Object = sent
	default:
		out.NotKnown = "the response does not contain it"
	}
}

// missing reports whether the object of a request does not exist.
func (a *asked) missing(ctx context.Context, request reach.Request) bool {
	_, err := a.target.client.Get(ctx, client.Object{Resource: a.res, Namespace: request.Namespace, Name: request.Name})
	return apierrors.IsNotFound(err)
}

// oldObject returns the object as it was before an update or a delete, if the request did not change it.
func (a *asked) oldObject(ctx context.Context, request reach.Request) (map[string]any, error) {
	switch {
	case request.Name == "":
		return nil, errors.New("the request is for several objects")
	case request.Kind != a.KindFor(request.Resource, ""):
		return nil, fmt.Errorf("subresource %s has its own kind, %s", request.Subresource, request.Kind.Kind)
	case a.kept:
		return nil, errors.New("the API server only has the new one; a dry run shows it")
	}
	current, err := a.target.client.Get(ctx, client.Object{Resource: a.res, Namespace: request.Namespace, Name: request.Name})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("it does not exist any more")
	}
	if err != nil {
		return nil, err
	}
	return current.Object, nil
}
