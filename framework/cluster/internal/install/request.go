package install

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Prepare adds the labels for cleanup to the object of a Request, if the Request creates
// a cluster-scoped object, and narrows a webhook configuration or policy to the
// scenario. For a namespaced object it notes the resource. An object that the Request
// creates in a namespace of another client gets labels too, and is recorded. A Request of an
// Open scenario remains as it is.
func (i *Installer) Prepare(ctx context.Context, scope *Scope, request framework.Request) (framework.Request, error) {
	res, err := i.Client.Resources.Of(request.Kind)
	if err != nil {
		return request, nil //nolint:nilerr // sending it is an error
	}
	if res.Namespaced {
		if runid.Has(request.Namespace, scope.ID) || i.Record == nil {
			scope.noteCreated(res)
			return request, nil
		}
		return i.prepareForeign(ctx, scope, res, request)
	}
	if scope.Open {
		return request, nil
	}
	return i.prepareClusterScoped(scope, request), nil
}

// prepareForeign prepares a Request in a namespace of another client, which the operator
// has allowed.
func (i *Installer) prepareForeign(ctx context.Context, scope *Scope, res client.Resource, request framework.Request) (framework.Request, error) {
	creates := request.Verb == framework.VerbCreate || request.Verb == framework.VerbApply
	if !creates || request.DryRun || request.Subresource != "" || isReview(request) {
		return request, nil
	}
	o := client.Object{Resource: res, Namespace: request.Namespace, Name: request.Name}
	if o.Name == "" || request.Object == nil {
		return request, fmt.Errorf("%s: %w: an object in a namespace of other clients needs a name and must not be a raw body, so that it can be removed", request, framework.ErrForeign)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return request, fmt.Errorf("%s: read the object: %w", request, err)
	}
	request.Object = &unstructured.Unstructured{Object: WithLabels(fields, i.Labels(scope.ID))}
	return request, i.Record(ctx, o)
}

func (i *Installer) prepareClusterScoped(scope *Scope, request framework.Request) framework.Request {
	// A PUT to finalize of a Namespace replaces its labels too.
	replacesLabels := request.Subresource == "" || request.Subresource == "finalize" && request.Kind.Kind == "Namespace"
	if request.Object == nil || !replacesLabels || isReview(request) {
		return request
	}
	switch request.Verb {
	case framework.VerbUpdate, framework.VerbApply:
		if !runid.Has(request.Name, scope.ID) {
			return request // the object may belong to another client: with the label, it would be removed
		}
	case framework.VerbCreate:
	default:
		return request
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return request
	}
	if IsAdmission(request.Kind) {
		fields = restrict(i.Client.Resources, request.Kind, fields, scope)
	}
	request.Object = &unstructured.Unstructured{Object: WithLabels(fields, i.Labels(scope.ID))}
	return request
}

// Note notes what a Request has changed: the configurations and policies of the scenario, and
// what an Open one created.
func (i *Installer) Note(scope *Scope, request framework.Request, result framework.Result) {
	res, err := i.Client.Resources.Of(request.Kind)
	if err != nil || request.DryRun || request.Subresource != "" || isReview(request) || !result.Allowed() {
		return
	}
	metadata, _ := result.Fields()["metadata"].(map[string]any)
	o := client.Object{Resource: res, Namespace: request.Namespace}
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
		}
	case framework.VerbPatch:
		scope.noteObject(o)
		if IsAdmission(request.Kind) {
			scope.patch(request.Kind, request.Name, request.HTTP)
		}
	case framework.VerbDelete:
		scope.forget(request.Kind, request.Name)
	}
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview. Reviews are not stored and do not allow metadata.
func isReview(request framework.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}
