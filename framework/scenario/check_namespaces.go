package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// maxNamespaceName is the largest length of the short name of a namespace: with the ID of the
// scenario, it is a DNS label of at most 63 characters.
const maxNamespaceName = 40

// ownLabels is the prefix of the labels by which admissiontest finds its namespaces.
const ownLabels = "admissiontest.dev/"

var (
	namespaceName        = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	namespacePlaceholder = regexp.MustCompile(`\$\(namespace\.([^)]*)\)`)
)

// namespaces checks spec.namespaces, and that each placeholder $(namespace.NAME) names one of
// them.
func (c *checker) namespaces(spec *strictyaml.Node) {
	var names []string
	for i, item := range spec.List("namespaces") {
		where := specPlace().field("namespaces").item(i)
		name := item.Get("name")
		c.noOwnLabels(item.Get("labels"), where)
		if name == nil || name.Kind != strictyaml.KindText {
			continue // the decoder has reported it
		}
		switch {
		case slices.Contains(names, name.Raw):
			c.fail(name, fmt.Sprintf("another namespace has the name %s; expected a unique name", strictyaml.Quote(name.Raw)), "")
		case !namespaceName.MatchString(name.Raw) || len(name.Raw) > maxNamespaceName:
			c.fail(name, fmt.Sprintf("%s.name is %s; expected at most %d lower-case letters, digits and hyphens, such as other", where, strictyaml.Quote(name.Raw), maxNamespaceName),
				"it is a short name: the API server gets $(id)-NAME")
		}
		names = append(names, name.Raw)
	}
	c.namespacePlaceholders(spec, names)
}

// noOwnLabels refuses labels that admissiontest sets itself.
func (c *checker) noOwnLabels(labels *strictyaml.Node, where *place) {
	if labels == nil {
		return
	}
	for i := range labels.Fields {
		if label := &labels.Fields[i]; strings.HasPrefix(label.Name, ownLabels) {
			c.failField(label, fmt.Sprintf("%s has the label %s; expected labels without the prefix %s, which belongs to admissiontest", where, strictyaml.Quote(label.Name), ownLabels), "")
		}
	}
}

// namespacePlaceholders checks the placeholders in the texts and keys of a node. Those in other
// files, whose text no error shows, are checked when the scenario runs.
func (c *checker) namespacePlaceholders(n *strictyaml.Node, names []string) {
	if n == nil || c.inSteps[n] != "" {
		return
	}
	text := func(text string, line, column int) {
		for _, found := range namespacePlaceholder.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, found[1]) {
				c.fail(&strictyaml.Node{Line: line, Column: column}, fmt.Sprintf("unknown placeholder %s; expected the name of a namespace in spec.namespaces", found[0]),
					suggestOrList(found[1], names, "spec.namespaces is empty"))
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
