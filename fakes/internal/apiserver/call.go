package apiserver

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Call is one API call that a client of a World made.
type Call struct {
	// Verb is the verb of an API request: get, list, watch, create, update, patch, delete,
	// deletecollection.
	Verb string
	// Path is the path of a URL without a resource, such as "/version". Empty for a call about a
	// resource.
	Path string
	// Resource and Subresource are parts of the URL. Subresource can be empty.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name are parts of the URL. Each can be empty. For a call about a Namespace
	// object, only Name is set.
	Namespace, Name string
	// Object is the body of a create or update. Nil for other verbs.
	Object runtime.Object
	// Patch is the body of a patch.
	Patch []byte
	// DryRun is true for dryRun=All.
	DryRun bool
	// Informer is true for a list or watch by which an informer that a plugin made itself fills its
	// cache. Such a call belongs to no request.
	Informer bool
	// Err is the error that the client got. Nil after success, and while the call runs.
	Err error
	// Context is the context of the HTTP request, which is that of the caller, with its values.
	Context context.Context //nolint:containedctx // tests compare it
}

// Writes reports whether the call changes stored objects if it succeeds. Dry runs, reviews such as
// SubjectAccessReview, and requests for tokens change nothing.
func (c Call) Writes() bool {
	switch c.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch c.Resource.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "imagepolicy.k8s.io":
		return !c.DryRun && !strings.HasSuffix(c.Resource.Resource, "reviews")
	case "":
		return !c.DryRun && (c.Resource.Resource != "serviceaccounts" || c.Subresource != "token")
	default:
		return !c.DryRun
	}
}

// String returns "create v1 namespaces/status default/name".
func (c Call) String() string {
	if c.Path != "" {
		return c.Verb + " " + c.Path
	}
	resource := c.Resource.Resource
	if c.Subresource != "" {
		resource += "/" + c.Subresource
	}
	words := []string{c.Verb, c.Resource.GroupVersion().String(), resource}
	name := c.Name
	if name == "" && c.Object != nil {
		name = kinds.Metadata(c.Object).GetName() // the URL of a create has no name
	}
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	if name != "" {
		words = append(words, name)
	}
	if c.DryRun {
		words = append(words, "(dry run)")
	}
	return strings.Join(words, " ")
}
