package install

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Prepare adds the labels for cleanup to the object of a Request, if the Request creates
// a cluster-scoped object, and narrows a webhook configuration or policy to the
// scenario. For a namespaced object it notes the resource.
func (i *Installer) Prepare(scope *Scope, request framework.Request) framework.Request {
	res, err := i.Client.Resources.Of(request.Kind)
	if err != nil {
		return request
	}
	if res.Namespaced {
		scope.noteCreated(res)
		return request
	}
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
		fields = restrict(i.Client.Resources, request.Kind, fields, scope.ID)
	}
	request.Object = &unstructured.Unstructured{Object: WithLabels(fields, i.Labels(scope.ID))}
	return request
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview. Reviews are not stored and do not allow metadata.
func isReview(request framework.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}
