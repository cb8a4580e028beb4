package install

import (
	"errors"
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
	// Namespaces are namespaces of other clients that the operator allows.
	Namespaces []string
}

// disposable is the advice for what only a server without other clients can have.
const disposable = "use a server that ends with the run, such as target envtest, or --disposable if the API server is only for tests"

// Check returns a framework.ErrForeign that says why a request of the scenario is not sent, or nil.
func (p Confinement) Check(resource client.Resource, request framework.Request) error {
	if err := p.check(resource, request); err != nil {
		return fmt.Errorf("%s: %w: %w", request, framework.ErrForeign, err)
	}
	return nil
}

func (p Confinement) check(resource client.Resource, request framework.Request) error {
	for _, part := range []string{request.Name, request.Namespace, request.Subresource, request.HTTP.ProxyPath} {
		if strings.Contains(part, "..") || part != request.HTTP.ProxyPath && strings.Contains(part, "/") {
			return fmt.Errorf("%q changes the URL path of the request: remove \"..\", and \"/\" from names", part)
		}
	}
	switch {
	case resource.Namespaced:
		return p.checkNamespace(request.Namespace)
	case request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review"):
		return nil // reviews are not stored
	case resource.GroupVersionResource == client.Namespaces() && p.isOwn(request):
		return nil
	}
	return fmt.Errorf("%s are in no namespace, so other clients can use the object or its name: %s", resource.Resource, disposable)
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

// checkNamespace checks a namespace. The empty one means all, for a list.
func (p Confinement) checkNamespace(name string) error {
	if runid.Has(name, p.ID) || name != "" && slices.Contains(p.Namespaces, name) {
		return nil
	}
	if name == "" {
		return errors.New("the request is for all namespaces: set the namespace $(namespace)")
	}
	return fmt.Errorf("namespace %[1]s does not belong to the scenario, whose namespaces have $(id) in their names: use one of these, or run it on an API server that is only for tests: --disposable", name)
}

// CheckInstalled returns a framework.ErrForeign that says why an object of the scenario is not installed, or nil.
// Install checks the namespaces of other objects.
func (p Confinement) CheckInstalled(resource client.Resource, manifest map[string]any) error {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	var why string
	switch {
	case resource.Namespaced, object.IsAdmission(manifest):
		return nil
	case resource.Resource == "customresourcedefinitions":
		if why = conversion(manifest); why == "" {
			return nil
		}
	case resource.GroupVersionResource == client.Namespaces() && runid.Has(name, p.ID):
		return nil
	default:
		why = "it is in no namespace, so other clients can use the object or its name"
	}
	return fmt.Errorf("install %s %s: %w: %s: %s", resource.Resource, name, framework.ErrForeign, why, disposable)
}

// conversion returns why a CustomResourceDefinition affects every client, or "". Without its conversion webhook, lists of
// its objects fail for every client, and garbage collection with them: after a SIGKILL there is none.
func conversion(manifest map[string]any) string {
	if strategy, _, _ := unstructured.NestedString(manifest, "spec", "conversion", "strategy"); strategy == "Webhook" {
		return "if the run is killed, the conversion webhook of the CustomResourceDefinition no longer answers, and the garbage collection of the cluster waits for it"
	}
	return ""
}
