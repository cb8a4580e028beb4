package install

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// Note notes what a Request has changed: the configurations and policies of the scenario, and objects
// that it created outside of its namespaces. A raw body is not read: a scenario can hide a paramKind in it.
func (i *Installer) Note(scope *Scope, request client.Request, result framework.Result) {
	if request.DryRun || request.Subresource != "" || isReview(request) || !result.Allowed() {
		return
	}
	fields := result.Fields()
	o := client.Object{Resource: request.Resource, Namespace: request.Namespace}
	o.Name, _, _ = unstructured.NestedString(fields, "metadata", "name")
	switch request.Verb {
	case framework.VerbCreate, framework.VerbUpdate, framework.VerbApply, framework.VerbPatch:
		if IsAdmission(request.Kind) && request.HTTP.RawBody == nil { // the scenario runs alone: it is not narrowed
			scope.remember(request.Kind, o.Name, fields)
		}
		if result.Status.Code == http.StatusCreated {
			o.UID = (&unstructured.Unstructured{Object: fields}).GetUID()
			i.noteCreated(scope, o)
		}
	case framework.VerbDelete:
		scope.forget(request.Kind, request.Name)
	}
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview. Reviews are not stored and do not allow metadata.
func isReview(request client.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}
