package install

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Prepare narrows the webhook configuration or policy of a Request to the scenario. It
// notes the resource. An object that the Request creates in a namespace of another client is
// listed, and has the ID of the scenario as field manager. Every other Request remains as it is.
func (i *Installer) Prepare(ctx context.Context, scope *Scope, request client.Request) (client.Request, error) {
	if !request.DryRun && !isReview(request) {
		if err := i.noteResource(ctx, request.Resource); err != nil {
			return request, err
		}
	}
	if request.Resource.Namespaced {
		if runid.Has(request.Namespace, scope.ID) || i.List == nil {
			return request, nil
		}
		return i.prepareForeign(ctx, scope, request)
	}
	if !scope.Open && IsAdmission(request.Kind) {
		return i.prepareAdmission(scope, request)
	}
	return request, nil
}

// prepareForeign prepares a Request in a namespace of another client, which the operator
// has allowed.
func (i *Installer) prepareForeign(ctx context.Context, scope *Scope, request client.Request) (client.Request, error) {
	creates := request.Verb == framework.VerbCreate || request.Verb == framework.VerbApply
	if !creates || request.DryRun || request.Subresource != "" || isReview(request) {
		return request, nil
	}
	o := client.Object{Resource: request.Resource, Namespace: request.Namespace, Name: request.Name}
	if o.Name == "" || request.Object == nil {
		return request, fmt.Errorf("%s: %w: an object in a namespace of other clients needs a name and must not be a raw body, so that it can be removed", request, framework.ErrForeign)
	}
	if request.HTTP.Query.Get("fieldManager") != "" {
		return request, fmt.Errorf("%s: %w: the run recognizes an object in a namespace of other clients by its field manager, to remove it: remove the option fieldManager", request, framework.ErrForeign)
	}
	if found, err := i.Client.Get(ctx, o); err == nil && RunOf(found) != i.Run {
		return request, nil // it belongs to another client, and is not removed
	}
	request.HTTP.Query = maps.Clone(request.HTTP.Query)
	if request.HTTP.Query == nil {
		request.HTTP.Query = url.Values{}
	}
	request.HTTP.Query.Set("fieldManager", scope.ID)
	return request, i.List(ctx, o)
}

// prepareAdmission narrows a webhook configuration, policy or binding, and adds labels.
func (i *Installer) prepareAdmission(scope *Scope, request client.Request) (client.Request, error) {
	if request.Object == nil || request.Subresource != "" || request.DryRun {
		return request, nil // a dry run decides about nothing
	}
	switch request.Verb {
	case framework.VerbUpdate, framework.VerbApply:
		if !runid.Has(request.Name, scope.ID) {
			return request, nil // the object may belong to another client: with the label, it would be removed
		}
	case framework.VerbCreate:
	default:
		return request, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return request, nil //nolint:nilerr // sending it is an error
	}
	to := i.toScenario(scope)
	if err := i.checkHarmless(request.Kind, fields, to); err != nil {
		return request, fmt.Errorf("%s: %w", request, err)
	}
	fields = restrictTo(i.Client.Resources, request.Kind, fields, to)
	request.Object = &unstructured.Unstructured{Object: WithLabels(fields, i.Labels(scope.ID))}
	return request, nil
}

// Note notes what a Request has changed: the configurations and policies of the scenario, and objects
// that it created outside of its namespaces.
func (i *Installer) Note(ctx context.Context, scope *Scope, request client.Request, result framework.Result) error {
	if request.DryRun || request.Subresource != "" || isReview(request) || !result.Allowed() {
		return nil
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	o := client.Object{Resource: request.Resource, Namespace: request.Namespace}
	o.Name, _ = metadata["name"].(string)
	switch request.Verb {
	case framework.VerbCreate, framework.VerbUpdate, framework.VerbApply:
		scope.noteObject(o)
		if request.Object != nil && IsAdmission(request.Kind) {
			if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object); err == nil {
				scope.remember(request.Kind, o.Name, fields)
			}
		}
		if result.Status.Code == http.StatusCreated {
			scope.noteOutside(o)
			created := &unstructured.Unstructured{Object: result.Fields()}
			o.UID = created.GetUID()
			scope.noteStored(o)
			if request.Resource.Namespaced && !runid.Has(request.Namespace, scope.ID) && request.HTTP.Query.Get("fieldManager") == "" {
				return i.listCreated(ctx, o, created)
			}
		}
	case framework.VerbPatch:
		scope.noteObject(o)
		if IsAdmission(request.Kind) {
			scope.patch(request.Kind, request.Name, request.HTTP)
		}
	case framework.VerbDelete:
		scope.forget(request.Kind, request.Name)
	}
	return nil
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview. Reviews are not stored and do not allow metadata.
func isReview(request client.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}
