package apiserver

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/fakes/internal/kinds"
)

// Call is one API call of a client. It has the fields of fakes.Call, which documents them.
type Call struct {
	Verb            string
	Path            string
	Resource        schema.GroupVersionResource
	Subresource     string
	Namespace, Name string
	Object          runtime.Object
	Patch           []byte
	DryRun          bool
	Err             error
	Context         context.Context //nolint:containedctx // tests compare it
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
