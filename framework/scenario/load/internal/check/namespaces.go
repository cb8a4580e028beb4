package check

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

var namespacePlaceholder = regexp.MustCompile(`\$\(namespace\.([^)]*)\)`)

// namespaces checks spec.namespaces, and that each placeholder $(namespace.NAME) names one of
// them.
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
	c.namespacePlaceholders(spec, names)
}

// namespacePlaceholders checks the placeholders in the texts and keys of a node. Those in other
// files, whose text no error shows, are checked when the scenario runs.
func (c *checker) namespacePlaceholders(n *strictyaml.Node, names []string) {
	if n == nil || c.origin.Steps[n] != "" {
		return
	}
	text := func(text string, line, column int) {
		for _, found := range namespacePlaceholder.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, found[1]) {
				c.Fail(&strictyaml.Node{Line: line, Column: column}, fmt.Sprintf("unknown placeholder %s; expected the name of a namespace in spec.namespaces", found[0]),
					decode.SuggestOrList(found[1], names, "spec.namespaces is empty"))
			}
		}
	}
	if n.Kind == strictyaml.KindText {
		text(n.Raw, n.Line, n.Column)
	}
	for _, item := range n.Items {
		c.namespacePlaceholders(item, names)
	}
	for i := range n.Fields {
		field := &n.Fields[i]
		text(field.Name, field.Line, field.Column)
		c.namespacePlaceholders(field.Value, names)
	}
}
