package scenario

import (
	"fmt"
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
		c.placeholdersOf(n.Raw, n)
	}
	for _, item := range n.Items {
		c.placeholdersIn(item)
	}
	for _, field := range n.Fields {
		c.placeholdersOf(field.Name, field.Key)
		c.placeholdersIn(field.Value)
	}
}

// placeholdersOf checks the placeholders in a string. No error shows a string of another file.
func (c *checker) placeholdersOf(text string, at *document.Node) {
	for _, name := range placeholdersIn(text) {
		known, expected, hint := c.placeholder(name)
		if known {
			continue
		}
		message := fmt.Sprintf("unknown placeholder $(%s)", name)
		if at.File() != c.root.File() {
			message, hint = "unknown placeholder", ""
		}
		if hint == "" {
			hint = "to write the string itself, begin it with $$("
		}
		c.Fail(at, message+"; expected "+expected, hint)
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
		for _, namespace := range c.scenario.Spec.Namespaces {
			names = append(names, namespace.Name)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		expected, none = "the name of a namespace in spec.namespaces", "spec.namespaces is empty"
	case first == "policy" && rest != "":
		names, expected, none = slices.Concat(c.policies, c.bindings), "the name of a policy or binding of the scenario", "it has none"
	case first == "steps" && rest != "" && !c.inSteps:
		return false, "$(steps.ID.…) only in steps", "no step has run yet"
	case first == "steps" && rest != "":
		rest, _, _ = strings.Cut(rest, ".")
		names, expected, none = slices.Collect(maps.Keys(c.ids)), "the id of a step", "no step has one"
	default:
		return false, "one of " + knownPlaceholders, document.DidYouMean(name, whole)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.Contains(names, rest), expected, document.SuggestOrList(rest, names, none)
}
