package install

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Confinement is what one scenario may do on an API server with other clients: it may send requests for objects in its
// namespaces, which have its ID in their names, and for these Namespaces themselves. It may install webhook configurations and
// policies, which are narrowed to its namespaces, and CustomResourceDefinitions. ID is required.
type Confinement struct {
	// ID is the ID of the scenario.
	ID string
}

// disposable is the advice for what only a server without other clients can have.
const disposable = "use a server that ends with the run, such as target envtest, or --disposable if the API server is only for tests"

// Check returns a framework.ErrForeign that says why a request of the scenario is not sent, or nil.
func (p Confinement) Check(resource client.Resource, request framework.Request) error {
	why := fmt.Sprintf("%s are in no namespace, so other clients can use the object or its name: %s", resource.Resource, disposable)
	path := slices.ContainsFunc([]string{request.Name, request.Namespace, request.Subresource}, func(part string) bool { return strings.Contains(part, "/") || strings.Contains(part, "..") })
	switch {
	case path || strings.Contains(request.HTTP.ProxyPath, ".."):
		why = "a name changes the URL path of the request: remove \"..\", and \"/\" from names"
	case resource.Namespaced && runid.Has(request.Namespace, p.ID):
		return nil
	case resource.Namespaced && request.Namespace == "":
		why = "the request is for all namespaces: set the namespace $(namespace)"
	case resource.Namespaced:
		why = fmt.Sprintf("namespace %s does not belong to the scenario, whose namespaces have $(id) in their names: use one of these, or run it on an API server that is only for tests: --disposable", request.Namespace)
	case request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review"):
		return nil // reviews are not stored
	case resource.GroupVersionResource == client.Namespaces() && p.isOwn(request):
		return nil
	}
	return fmt.Errorf("%s: %w: %s", request, framework.ErrForeign, why)
}

// isOwn reports whether a request is for one Namespace of the scenario.
func (p Confinement) isOwn(request framework.Request) bool {
	if request.Verb == framework.VerbList || request.Verb == framework.VerbDeleteCollection {
		return false
	}
	name := request.Name
	if request.Verb == framework.VerbCreate && request.Subresource == "" {
		sent, ok := request.Object.(*unstructured.Unstructured)
		if !ok || request.HTTP.RawBody != nil {
			return false
		}
		name = sent.GetName()
	}
	return runid.Has(name, p.ID)
}

// CheckInstalled returns a framework.ErrForeign that says why an object of the scenario is not installed, or nil.
// Install checks the namespaces of other objects.
func (p Confinement) CheckInstalled(resource client.Resource, manifest map[string]any) error {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	strategy, _, _ := unstructured.NestedString(manifest, "spec", "conversion", "strategy")
	why := "it is in no namespace, so other clients can use the object or its name"
	switch isDefinition := resource.Resource == "customresourcedefinitions"; {
	case resource.Namespaced, object.IsAdmission(manifest), isDefinition && strategy != "Webhook", resource.GroupVersionResource == client.Namespaces() && runid.Has(name, p.ID):
		return nil
	case isDefinition: // lists of its objects fail for every client
		why = "if the run is killed, the conversion webhook of the CustomResourceDefinition no longer answers, and the garbage collection of the cluster waits for it"
	}
	return fmt.Errorf("install %s %s: %w: %s: %s", resource.Resource, name, framework.ErrForeign, why, disposable)
}
