package check

import (
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// namespaces checks spec.namespaces.
func (c *checker) namespaces(spec *strictyaml.Node) {
	var names []string
	for i, item := range spec.List("namespaces") {
		where := decode.Root("spec").Field("namespaces").Item(i)
		name := item.Get("name")
		c.NoOwnLabels(item.Get("labels"), where)
		if name == nil || name.Kind != strictyaml.KindText {
			continue // the decoder has reported it
		}
		switch {
		case slices.Contains(names, name.Raw):
			c.Fail(name, fmt.Sprintf("another namespace has the name %s; expected a unique name", strictyaml.Quote(name.Raw)), "")
		case !decode.IsNamespace(name.Raw):
			c.Fail(name, fmt.Sprintf("%s.name is %s; expected at most %d lower-case letters, digits and hyphens, such as other", where, strictyaml.Quote(name.Raw), decode.MaxNamespaceName),
				"write a short name: the name on the API server is $(id)-NAME")
		}
		names = append(names, name.Raw)
	}
	c.spaces = names
}
