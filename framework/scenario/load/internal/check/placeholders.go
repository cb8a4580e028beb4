package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
	"github.com/admissiontest/admissiontest/internal/engine/placeholder"
)

// placeholders checks the placeholders of a spec where they are replaced. A CustomResourceDefinition that
// is given can have other texts of that form.
func (c *checker) placeholders(spec *strictyaml.Node) {
	for _, manifest := range spec.List("given") {
		if manifest.Text("kind") != "CustomResourceDefinition" {
			c.placeholdersIn(manifest, c.File)
		}
	}
	for _, manifest := range c.origin.Given {
		if manifest.Node.Text("kind") != "CustomResourceDefinition" {
			c.placeholdersIn(manifest.Node, manifest.File)
		}
	}
	c.placeholdersIn(spec.Get("namespaces"), c.File)
	c.placeholdersIn(spec.Get("hooks"), c.File)
	c.inSteps = true
	c.placeholdersIn(spec.Get("when"), c.File)
}

// placeholdersIn checks the placeholders in the texts and keys of a node. No error shows a text of another
// file.
func (c *checker) placeholdersIn(n *strictyaml.Node, file string) {
	if n == nil {
		return
	}
	if other, ok := c.origin.Steps[n]; ok {
		file = other
	}
	text := func(text string, line, column int) {
		for _, name := range placeholder.Names(text) {
			known, expected, hint := c.placeholder(name)
			if known {
				continue
			}
			in := decode.Decoder{File: file}
			message := fmt.Sprintf("unknown placeholder $(%s)", name)
			if file != c.File {
				message, hint = "unknown placeholder", ""
			}
			if hint == "" {
				hint = "to write the string itself, begin it with $$("
			}
			in.Fail(&strictyaml.Node{Line: line, Column: column}, message+"; expected "+expected, hint)
			c.Errors = append(c.Errors, in.Errors...)
		}
	}
	if n.Kind == strictyaml.KindText {
		text(n.Raw, n.Line, n.Column)
	}
	for _, item := range n.Items {
		c.placeholdersIn(item, file)
	}
	for i := range n.Fields {
		field := &n.Fields[i]
		text(field.Name, field.Line, field.Column)
		c.placeholdersIn(field.Value, file)
	}
}

// placeholder reports whether a placeholder of a name can have a value, and otherwise what was expected and
// what to do.
func (c *checker) placeholder(name string) (known bool, expected, hint string) {
	whole := []string{"id", "namespace", "run", "hooks.host", "hooks.port", "hooks.caBundle"}
	first, rest, _ := strings.Cut(name, ".")
	var names []string
	var none string
	switch {
	case slices.Contains(whole, name):
		return true, "", ""
	case first == "namespace" && strings.Contains(name, "."):
		names, expected, none = c.spaces, "the name of a namespace in spec.namespaces", "spec.namespaces is empty"
	case first == "policy" && rest != "":
		names, expected, none = slices.Concat(c.policies, c.bindings), "the name of a policy or binding of the scenario", "it has none"
	case first == "steps" && rest != "" && !c.inSteps:
		return false, "$(steps.ID.…) only in steps", "no step has run yet"
	case first == "steps" && rest != "":
		rest, _, _ = strings.Cut(rest, ".")
		names, expected, none = slices.Collect(maps.Keys(c.ids)), "the id of a step", "no step has one"
	default:
		return false, "one of " + placeholder.Known, decode.DidYouMean(name, whole)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.Contains(names, rest), expected, decode.SuggestOrList(rest, names, none)
}
