package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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

// oldObject returns the object as it was before an update or a delete: as it is, if the request did
// not change it, or as it was at the resource version before the new one.
func (a *asked) oldObject(ctx context.Context, request reach.Request) (map[string]any, error) {
	if request.Name == "" {
		return nil, errors.New("the request is for several objects")
	}
	parent := a.KindFor(request.Resource, "")
	scale := request.Kind.Group == "autoscaling" && request.Kind.Kind == "Scale" && request.Subresource == "scale"
	if request.Kind != parent && !scale {
		return nil, fmt.Errorf("subresource %s has its own kind, %s", request.Subresource, request.Kind.Kind)
	}
	o := client.Object{Resource: a.res, Namespace: request.Namespace, Name: request.Name}
	if !a.kept {
		var subresources []string
		if scale {
			subresources = append(subresources, request.Subresource)
		}
		current, err := a.target.client.Get(ctx, o, subresources...)
		if apierrors.IsNotFound(err) {
			return nil, errors.New("it does not exist any more")
		}
		if err != nil {
			return nil, err
		}
		return current.Object, nil
	}
	version, err := strconv.ParseUint((&unstructured.Unstructured{Object: request.Object}).GetResourceVersion(), 10, 64)
	if err != nil || version == 0 {
		return nil, errors.New("the new object has no resource version")
	}
	old, err := a.target.client.GetAt(ctx, o, strconv.FormatUint(version-1, 10))
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, errors.New("it did not exist")
	}
	old.SetGroupVersionKind(parent)
	if scale {
		return a.oldScale(request.Object, old), nil
	}
	return old.Object, nil
}

// oldScale returns the Scale before an update, from the Scale after it and the old object. They differ in
// the number of replicas: a Scale has no other field that a client can set.
func (a *asked) oldScale(after map[string]any, old *unstructured.Unstructured) map[string]any {
	path := []string{"spec", "replicas"}
	for _, crd := range a.definitions {
		versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
		for _, item := range versions {
			version, _ := item.(map[string]any)
			specified, found, _ := unstructured.NestedString(version, "subresources", "scale", "specReplicasPath")
			if found && version["name"] == old.GroupVersionKind().Version {
				path = strings.Split(strings.TrimPrefix(specified, "."), ".")
			}
		}
	}
	scale := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(maps.Clone(after))}
	scale.SetResourceVersion(old.GetResourceVersion())
	spec := map[string]any{}
	if replicas, found, _ := unstructured.NestedFieldNoCopy(old.Object, path...); found {
		spec["replicas"] = replicas
	}
	scale.Object["spec"] = spec
	return scale.Object
}
