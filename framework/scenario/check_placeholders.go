package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// placeholders checks the placeholders of a spec where they are replaced. A CustomResourceDefinition that
// is given can have other strings of that form.
func (c *checker) placeholders(spec *document.Node) {
	for _, manifest := range c.scenario.origin.given {
		if manifest.Text("kind") != "CustomResourceDefinition" {
			c.placeholdersIn(manifest)
		}
	}
	c.placeholdersIn(spec.Get("namespaces"))
	c.placeholdersIn(spec.Get("hooks"))
	c.inSteps = true
	c.placeholdersIn(spec.Get("when"))
}

// placeholdersIn checks the placeholders in the strings and keys of a node.
func (c *checker) placeholdersIn(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind == document.KindText {
		for _, name := range placeholdersIn(n.Raw) {
			c.placeholder(name, n)
		}
	}
	for _, item := range n.Items {
		c.placeholdersIn(item)
	}
	for _, field := range n.Fields {
		c.placeholdersIn(field.Key)
		c.placeholdersIn(field.Value)
	}
}

// placeholder checks that a placeholder can have a value. No error shows a string of another file.
func (c *checker) placeholder(name string, at *document.Node) {
	whole := []string{"id", "namespace", "run", "hooks.host", "hooks.port", "hooks.caBundle"}
	first, rest, named := strings.Cut(name, ".")
	var known []string
	expected := "one of " + knownPlaceholders
	hint := document.DidYouMean(name, whole)
	switch {
	case slices.Contains(whole, name):
		return
	case first == "namespace" && named:
		for _, namespace := range c.scenario.Spec.Namespaces {
			known = append(known, namespace.Name)
		}
		expected = "the name of a namespace in spec.namespaces"
	case first == "policy" && named:
		known, expected = slices.Concat(c.policies, c.bindings), "the name of a policy or binding of the scenario"
	case first == "steps" && named && c.inSteps:
		rest, _, _ = strings.Cut(rest, ".")
		known, expected = slices.Collect(maps.Keys(c.ids)), "the id of a step"
	}
	if slices.Contains(known, rest) {
		return
	}
	if known != nil {
		hint = document.SuggestOrList(rest, slices.Compact(slices.Sorted(slices.Values(known))), "")
	}
	if at.File() != c.root.File() {
		name, hint = "…", ""
	}
	c.Fail(at, "unknown placeholder $("+name+"); expected "+expected, cmp.Or(hint, "to write the string itself, begin it with $$("))
}
