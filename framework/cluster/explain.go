package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/install"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// Explain returns what each webhook, policy and binding of the Sandbox with that ID does about a
// Request, after its Result: see package reach. The names are those of the manifests. It is nil for a
// Request that admission does not see.
func (t *Target) Explain(ctx context.Context, id string, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	if request.Operation() == "" {
		return nil, nil
	}
	res, err := t.client.Resources.Of(request.Kind)
	if err != nil {
		return nil, err
	}
	manifests, err := t.admissionOf(ctx, id)
	if err != nil || len(manifests) == 0 {
		return nil, err
	}
	admission, err := reach.New(manifests)
	if err != nil {
		return nil, err
	}
	a := &asked{target: t, kept: request.Verb != framework.VerbDelete && result.Allowed() && !request.DryRun}
	if a.EquivalentResourceMapper, err = t.mapper(ctx, res); err != nil {
		return nil, err
	}
	findings, err := admission.Explain(ctx, t.reachRequest(ctx, a, res, request, result), a)
	for i := range findings {
		f := &findings[i]
		f.Name, f.Binding = strings.TrimPrefix(f.Name, id+"-"), strings.TrimPrefix(f.Binding, id+"-")
		f.Text = strings.ReplaceAll(f.Text, `"`+id+"-", `"`)
	}
	return findings, err
}

// admissionOf returns the webhook configurations, policies and bindings of a Sandbox as they are.
func (t *Target) admissionOf(ctx context.Context, id string) ([]map[string]any, error) {
	var all []map[string]any
	for _, kind := range install.AdmissionKinds() {
		res, err := t.client.Resources.Of(schema.GroupVersionKind{Group: install.AdmissionGroup, Version: "v1", Kind: kind})
		if err != nil {
			continue // the API server does not serve it
		}
		list, err := t.client.ListObjects(ctx, res, metav1.ListOptions{LabelSelector: ScenarioLabel + "=" + id})
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			item.SetAPIVersion(install.AdmissionGroup + "/v1")
			item.SetKind(kind)
			all = append(all, item.Object)
		}
	}
	return all, nil
}

// mapper returns which resources are equivalent.
func (t *Target) mapper(ctx context.Context, res client.Resource) (runtime.EquivalentResourceMapper, error) {
	lists, err := t.client.ResourceLists()
	if err != nil {
		return nil, err
	}
	var definitions []map[string]any
	crds, err := t.client.Resources.Of(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err == nil {
		if crd, err := t.client.Get(ctx, client.Object{Resource: crds, Name: res.GroupResource().String()}); err == nil {
			definitions = append(definitions, crd.Object)
		}
	}
	return reach.NewMapper(lists, definitions...), nil
}

// reachRequest returns a Request as admission saw it, as far as that is known: from the last call of a
// Hook, or else from the response and the API server.
func (t *Target) reachRequest(ctx context.Context, a *asked, res client.Resource, request framework.Request, result framework.Result) reach.Request {
	out := reach.Request{
		Operation: request.Operation(), Resource: res.GroupVersionResource, Subresource: request.Subresource, Kind: a.KindFor(res.GroupVersionResource, request.Subresource),
		Namespace: request.Namespace, Name: request.Name, DryRun: request.DryRun,
	}
	if request.Verb == framework.VerbApply && result.Status.Code == 201 {
		out.Operation = "CREATE"
	}
	if request.User != nil {
		out.User = *request.User
		out.User.Groups = append(slices.Clone(request.User.Groups), "system:authenticated")
	} else {
		out.User = t.client.User(ctx)
	}
	if seen := lastCall(result.Trace, out); seen != nil {
		out.Object, _ = seen["object"].(map[string]any)
		out.OldObject, _ = seen["oldObject"].(map[string]any)
		out.Options, _ = seen["options"].(map[string]any)
		return out
	}
	sent := (framework.Result{Object: request.Object}).Fields()
	switch {
	case out.Operation == "CONNECT":
		out.Object = map[string]any{"apiVersion": out.Kind.GroupVersion().String(), "kind": out.Kind.Kind}
	case out.Operation == "DELETE":
	case result.Allowed() && (&unstructured.Unstructured{Object: result.Fields()}).GroupVersionKind() == out.Kind:
		out.Object = result.Fields()
	case sent != nil && request.Verb != framework.VerbApply:
		out.Object = sent
	default:
		out.NotKnown = "the response does not contain it"
	}
	if out.Operation == "UPDATE" || out.Operation == "DELETE" {
		var err error
		if out.OldObject, err = t.oldObject(ctx, a, res, out); err != nil {
			out.NotKnown = "the old object is unknown: " + err.Error()
		}
	}
	return out
}

// lastCall returns the request of the last call of a Hook for the same request and in the same
// version, or nil.
func lastCall(trace framework.Trace, want reach.Request) map[string]any {
	for _, call := range slices.Backward(trace) {
		request := call.Request()
		kind, _ := request["kind"].(map[string]any)
		if call.Plugin == nil && maps.Equal(kind, map[string]any{"group": want.Kind.Group, "version": want.Kind.Version, "kind": want.Kind.Kind}) &&
			request["operation"] == want.Operation && (want.Name == "" || request["name"] == want.Name) {
			return request
		}
	}
	return nil
}

// oldObject returns the object as it was before an update or a delete: as it is, if the request did
// not change it, or as it was at the resource version before the new one.
func (t *Target) oldObject(ctx context.Context, a *asked, res client.Resource, request reach.Request) (map[string]any, error) {
	o := client.Object{Resource: res, Namespace: request.Namespace, Name: request.Name}
	switch {
	case request.Subresource != "" && request.Subresource != "status":
		return nil, fmt.Errorf("the request is for subresource %s", request.Subresource)
	case request.Name == "":
		return nil, errors.New("the request is for several objects")
	case !a.kept:
		current, err := t.client.Get(ctx, o)
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
	old, err := t.client.GetAt(ctx, o, strconv.FormatUint(version-1, 10))
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, errors.New("it did not exist")
	}
	old.SetGroupVersionKind(request.Kind)
	return old.Object, nil
}

// asked is the reach.Cluster that asks the API server.
type asked struct {
	runtime.EquivalentResourceMapper
	target *Target
	// kept is true if the API server has the new object of the request.
	kept bool
}

// Namespace implements reach.Cluster.
func (a *asked) Namespace(ctx context.Context, name string) (map[string]any, error) {
	found, err := a.target.client.Get(ctx, client.Namespace(name))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Object, nil
}

// Params implements reach.Cluster.
func (a *asked) Params(ctx context.Context, kind schema.GroupVersionKind) (reach.Params, error) {
	res, err := a.target.client.Resources.Of(kind)
	if err != nil {
		return reach.Params{}, nil //nolint:nilerr // it is not served
	}
	list, err := a.target.client.ListObjects(ctx, res, metav1.ListOptions{})
	if err != nil {
		return reach.Params{}, err
	}
	params := reach.Params{Served: true, Namespaced: res.Namespaced}
	for _, item := range list.Items {
		item.SetGroupVersionKind(kind)
		params.Objects = append(params.Objects, item.Object)
	}
	return params, nil
}

// Convert implements reach.Cluster: it reads the object in the other version.
func (a *asked) Convert(ctx context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	of := unstructured.Unstructured{Object: object}
	res, err := a.target.client.Resources.Of(kind)
	if err != nil {
		return nil, err
	}
	current, err := a.target.client.Get(ctx, client.Object{Resource: res, Namespace: of.GetNamespace(), Name: of.GetName()})
	if err != nil {
		return nil, err
	}
	if of.GetResourceVersion() == "" || current.GetResourceVersion() != of.GetResourceVersion() {
		return nil, errors.New("the API server does not have the object as it was in the request")
	}
	return current.Object, nil
}
