package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// Explain returns what each webhook, policy and binding of the Sandbox with that ID does about a
// Request, after its Result: see package reach. The ID "" stands for Foreign. Configurations and policies are as their manifests say:
// with their names, and not narrowed. It is nil for a Request that admission does not see.
func (t *Target) Explain(ctx context.Context, id string, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	if request.Operation() == "" {
		return nil, nil
	}
	manifests := t.installer.Given(id)
	if id == "" {
		var err error
		if manifests, err = t.Foreign(ctx); err != nil {
			return nil, err
		}
	}
	if len(manifests) == 0 {
		return nil, nil
	}
	a, admission, err := t.ask(ctx, manifests, request.Kind)
	if err != nil {
		return nil, err
	}
	a.kept = request.Verb != framework.VerbDelete && result.Allowed() && !request.DryRun
	return admission.Explain(ctx, a.request(ctx, request, result), a)
}

// TypeCheck returns what the type check of Kubernetes says about the policies of the Sandbox with that ID,
// for the kind of object of a Request. It returns an error if the API server has no schema for it.
func (t *Target) TypeCheck(ctx context.Context, id string, request framework.Request) ([]reach.TypeWarning, error) {
	a, admission, err := t.ask(ctx, t.installer.Given(id), request.Kind)
	if err != nil {
		return nil, err
	}
	discoverer, err := t.client.Discovery(ctx)
	if err != nil {
		return nil, err
	}
	of := reach.Checked{Kind: a.KindFor(a.res.GroupVersionResource, request.Subresource), Resources: a, Client: discoverer}
	for _, definition := range a.definitions {
		crd := unstructured.Unstructured{Object: definition}
		of.Version = fmt.Sprintf("%s/%d", crd.GetUID(), crd.GetGeneration())
	}
	return t.types.Check(admission, of)
}

// ask returns what manifests are of, and the cluster for Requests for a kind: it reads which resources are equivalent.
func (t *Target) ask(ctx context.Context, manifests []map[string]any, kind schema.GroupVersionKind) (*asked, *reach.Admission, error) {
	admission, err := reach.New(manifests)
	if err != nil {
		return nil, nil, err
	}
	a := &asked{target: t}
	if a.res, err = t.client.Resources.Of(kind); err != nil {
		return nil, nil, err
	}
	lists, err := t.client.ResourceLists(ctx)
	if err != nil {
		return nil, nil, err
	}
	crds, err := t.client.Resources.Of(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err == nil {
		if crd, err := t.client.Get(ctx, client.Object{Resource: crds, Name: a.res.GroupResource().String()}); err == nil {
			a.definitions = append(a.definitions, crd.Object)
		}
	}
	a.EquivalentResourceMapper = reach.NewMapper(lists, a.definitions...)
	return a, admission, nil
}

// request returns a Request as admission saw it, as far as that is known: from the last call of a
// Hook, or else from the response and the API server.
func (a *asked) request(ctx context.Context, request framework.Request, result framework.Result) reach.Request {
	out := reach.Request{
		Operation: request.Operation(), Resource: a.res.GroupVersionResource, Subresource: request.Subresource, Kind: a.KindFor(a.res.GroupVersionResource, request.Subresource),
		Namespace: request.Namespace, Name: request.Name, DryRun: request.DryRun, WebhooksForReviews: a.target.installer.WebhooksForReviews,
	}
	if request.Verb == framework.VerbApply && result.Status.Code == 201 {
		out.Operation = "CREATE"
	}
	if request.User != nil {
		out.User = *request.User
		out.User.Groups = append(slices.Clone(request.User.Groups), "system:authenticated")
	} else {
		out.User = a.target.client.User(ctx)
	}
	if request.Verb == framework.VerbCreate || request.Verb == framework.VerbUpdate {
		out.Sent = (framework.Result{Object: request.Object}).Fields()
	}
	if seen := lastCall(result.Trace, out); seen != nil {
		out.Object, _ = seen["object"].(map[string]any)
		out.OldObject, _ = seen["oldObject"].(map[string]any)
		out.Options, _ = seen["options"].(map[string]any)
		return out
	}
	a.readObjects(ctx, request, result, &out)
	return out
}

// webhooksForReviews reports whether an API server calls webhooks for reviews: see reach.Request.
func webhooksForReviews(server framework.TargetInfo) bool {
	if excludes, listed := server.FeatureGates["ExcludeAdmissionWebhookVirtualResources"]; listed {
		return !excludes
	}
	has, err := version.ParseGeneric(server.ServerVersion)
	return err == nil && has.LessThan(version.MajorMinor(1, 37))
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

// asked is the reach.Cluster that asks the API server.
type asked struct {
	runtime.EquivalentResourceMapper
	target *Target
	// res is the resource of the request.
	res client.Resource
	// definitions has the CustomResourceDefinition of the resource, if there is one.
	definitions []map[string]any
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
