package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// KindUncovered is the kind of the list of behaviours that no scenario can show.
// The loader passes its documents over.
const KindUncovered = "Uncovered"

// checker says what is wrong in a scenario that its types cannot say. It reads
// the document's nodes, so that each error has its place, and leaves alone what
// the decoder has already refused.
type checker struct {
	decoder
	// files are the manifests of spec.givenFiles.
	files []*node
	// webhooks are the names of those that some given configuration has; ours has
	// those that lead to a Hook, and elsewhere the Service of those under test.
	webhooks  []string
	ours      map[string]bool
	elsewhere map[string]string
	// converts is true where a CustomResourceDefinition converts by a webhook.
	converts bool
	// loose is what a server's own files say; a webhook named there is known.
	loose string
	// ids are the steps' IDs, by their lines.
	ids map[string]int
}

// check validates one document.
func (c *checker) check(root *node) {
	c.enum(root, "apiVersion", []string{APIVersion})
	c.enum(root, "kind", []string{Kind})
	c.name(root.get("metadata").get("name"))
	spec := root.get("spec")
	c.requirement(spec)
	c.gatherWebhooks(spec)
	for i, manifest := range spec.list("given") {
		c.manifest(manifest, specPlace().field("given").item(i))
	}
	c.hooks(spec.get("hooks"), specPlace().field("hooks"))
	c.conversion(spec.get("conversion"))
	if when := spec.get("when"); when != nil {
		if when.kind == kindList && len(when.items) == 0 {
			c.fail(when, "spec.when has no steps; expected at least one", "")
		}
		c.steps(when, specPlace().field("when"))
	}
}

func specPlace() *place { return (*place)(nil).field("spec") }

// enum checks that a field, if it is there and a text, is one of several.
func (c *checker) enum(n *node, name string, allowed []string) {
	value := n.get(name)
	if value == nil || value.kind != kindText || slices.Contains(allowed, value.raw) {
		return
	}
	hint := didYouMean(value.raw, allowed)
	if hint == "" && len(allowed) == 1 {
		hint = fmt.Sprintf("write %q", allowed[0])
	}
	expected := "one of " + strings.Join(allowed, ", ")
	if len(allowed) == 1 {
		expected = allowed[0]
	}
	c.fail(value, fmt.Sprintf("unknown %s %s; expected %s", name, shown(value.raw), expected), hint)
}

func (c *checker) name(value *node) {
	if value == nil || value.kind != kindText || isSlug(value.raw) {
		return
	}
	hint := ""
	if guess := slugOf(value.raw); isSlug(guess) {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	c.fail(value, fmt.Sprintf("metadata.name is %s; expected lower-case words with dots between them, the area first, as reinvocation.if-needed.again", shown(value.raw)), hint)
}

// isSlug reports whether a name has two parts or more with dots between them,
// each of lower-case words, digits and single hyphens.
func isSlug(name string) bool {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		for word := range strings.SplitSeq(part, "-") {
			if word == "" || strings.ContainsFunc(word, notLowerOrDigit) {
				return false
			}
		}
	}
	return len(parts) > 1
}

func notLowerOrDigit(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// slugOf returns the slug that a name was likely meant to be.
func slugOf(name string) string {
	return strings.NewReplacer(" ", "-", "_", "-", "/", ".").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// requirement checks the fields of the spec that say what the law is.
func (c *checker) requirement(spec *node) {
	levels := make([]string, 0, len(framework.Levels()))
	for _, level := range framework.Levels() {
		levels = append(levels, string(level))
	}
	c.enum(spec, "level", levels)
	if law := spec.get("requirement"); law != nil && law.kind == kindText && strings.TrimSpace(law.raw) == "" {
		c.fail(law, "spec.requirement is empty; expected the law in one sentence", "")
	}
	if source := spec.get("source"); source != nil && source.kind == kindList && len(source.items) == 0 {
		c.fail(source, "spec.source is empty; expected at least one URL where the law stands", "")
	}
	for i, source := range spec.list("source") {
		if source.kind == kindText && strings.TrimSpace(source.raw) == "" {
			c.fail(source, fmt.Sprintf("spec.source[%d] is empty; expected the URL where the law stands", i), "")
		}
	}
	for i, id := range spec.list("behaviours") {
		if id.kind == kindText && !isBehaviour(id.raw) {
			c.fail(id, fmt.Sprintf("spec.behaviours[%d] is %s; expected the ID of a behaviour, as REINV-002 or PLUGIN-LimitRanger-003", i, shown(id.raw)), "")
		}
	}
	if since := spec.get("since"); since != nil && since.kind == kindText && !isMinor(since.raw) {
		c.fail(since, fmt.Sprintf("spec.since is %s; expected a Kubernetes minor version", shown(since.raw)), `write it as "1.36"`)
	}
	for i, need := range spec.list("needs") {
		if need.kind == kindText && !slices.Contains(framework.Abilities(), need.raw) {
			c.fail(need, fmt.Sprintf("spec.needs[%d] is %s; expected an ability that a target can have", i, shown(need.raw)),
				suggestOrList(need.raw, framework.Abilities(), ""))
		}
	}
}

// isBehaviour reports whether a text has the form AREA-001 or PLUGIN-Name-001.
func isBehaviour(id string) bool {
	parts := strings.Split(id, "-")
	number := parts[len(parts)-1]
	if len(number) != 3 || !digits(number) {
		return false
	}
	switch {
	case len(parts) == 3:
		return parts[0] == "PLUGIN" && isUpper(strings.ToUpper(parts[1]))
	case len(parts) == 2:
		return isUpper(parts[0])
	default:
		return false
	}
}

// isUpper reports whether a text is of the letters A to Z and, after the first, digits.
func isUpper(text string) bool {
	for i := range len(text) {
		letter := text[i] >= 'A' && text[i] <= 'Z'
		digit := text[i] >= '0' && text[i] <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	return text != ""
}

// isMinor reports whether a text has the form 1.36.
func isMinor(version string) bool {
	minor, ok := strings.CutPrefix(version, "1.")
	return ok && digits(minor) && len(minor) <= 3 && (minor == "0" || minor[0] != '0')
}

// manifest checks that a Kubernetes manifest says which object it is.
func (c *checker) manifest(n *node, where *place) {
	if n == nil || n.kind != kindMapping {
		return
	}
	for _, name := range []string{"apiVersion", "kind"} {
		value := n.get(name)
		switch {
		case value == nil:
			c.fail(n, fmt.Sprintf("%s has no %s; expected a Kubernetes manifest", where, name), fmt.Sprintf("add %q", name+":"))
		case value.kind != kindText || value.raw == "":
			c.fail(value, fmt.Sprintf("%s is %s; expected a text", where.field(name), value.describe()), "")
		}
	}
}
