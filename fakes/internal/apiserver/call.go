package apiserver

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// Call is one API call that a client of a World made. Package fakes documents its fields.
type Call struct {
	Verb, Path      string
	Resource        schema.GroupVersionResource
	Subresource     string
	Namespace, Name string
	Object          runtime.Object
	Patch           []byte
	DryRun          bool
	Informer        bool
	Err             error
	Context         context.Context //nolint:containedctx // tests compare it
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
