package install

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// Note notes what a Request has changed: the configurations and policies of the scenario, and objects
// that it created outside of its namespaces.
func (i *Installer) Note(scope *Scope, request client.Request, result framework.Result) {
	if request.DryRun || request.Subresource != "" || isReview(request) || !result.Allowed() {
		return
	}
	i.Client.Resources.AddStored(request.Resource)
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
			o.UID = (&unstructured.Unstructured{Object: result.Fields()}).GetUID()
			i.noteCreated(scope, o)
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
func isReview(request client.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}
