package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// checker finds errors in a scenario that its types do not exclude. It reads the
// nodes of the document, so that each error has its position, and skips what the
// decoder has already reported.
type checker struct {
	decoder
	// private is true for a file whose values no error shows.
	private bool
	// files are the manifests of spec.givenFiles.
	files []fileNode
	// inSteps are the files of the manifests of steps that are in another file.
	inSteps map[*strictyaml.Node]string
	// webhooks are the names in all configurations of the scenario. Services has the Services
	// of the webhooks under test, by name.
	webhooks []string
	services map[string]string
	// options has the webhooks that are installed for all scenarios.
	options LoadOptions
	// converts is true if a CustomResourceDefinition has a conversion webhook.
	converts bool
	// policies and bindings are the names of the policies and bindings of the scenario.
	policies, bindings []string
	// serverFiles is the text of the files of spec.server, which can name webhooks too.
	serverFiles string
	// ownServer is true if the scenario has spec.server.
	ownServer bool
	// ids are the lines of the steps, by ID.
	ids map[string]int
}

// check checks one document.
func (c *checker) check(root *strictyaml.Node) {
	c.enum(root, "apiVersion", []string{APIVersion})
	c.enum(root, "kind", []string{Kind, KindPolicyTest})
	c.name(root.Get("metadata").Get("name"))
	spec := root.Get("spec")
	c.ownServer = spec.Has("server")
	c.requirement(spec)
	c.enum(spec, "isolation", []string{string(IsolationNone)})
	c.namespaces(spec)
	c.gatherWebhooks(spec)
	for i, manifest := range spec.List("given") {
		c.manifest(manifest, specPlace().field("given").item(i))
	}
	c.hooks(spec.Get("hooks"), specPlace().field("hooks"))
	c.conversion(spec.Get("conversion"))
	c.fails(spec)
	c.fileNames(spec.Get("server").Get("files"), specPlace().field("server").field("files"))
	if when := spec.Get("when"); when != nil {
		if when.Kind == strictyaml.KindList && len(when.Items) == 0 && spec.Get("server").Get("fails") == nil {
			c.fail(when, "spec.when has no steps; expected at least one", "")
		}
		c.steps(when, specPlace().field("when"))
	}
}

func specPlace() *place { return (*place)(nil).field("spec") }

// enum checks that a field, if it is a text, has one of the allowed values.
func (c *checker) enum(n *strictyaml.Node, name string, allowed []string) {
	value := n.Get(name)
	if value == nil || value.Kind != strictyaml.KindText || slices.Contains(allowed, value.Raw) {
		return
	}
	hint := didYouMean(value.Raw, allowed)
	if hint == "" && len(allowed) == 1 {
		hint = fmt.Sprintf("write %q", allowed[0])
	}
	expected := "one of " + strings.Join(allowed, ", ")
	if len(allowed) == 1 {
		expected = allowed[0]
	}
	c.fail(value, fmt.Sprintf("unknown %s %s; expected %s", name, strictyaml.Quote(value.Raw), expected), hint)
}

func (c *checker) name(value *strictyaml.Node) {
	if value == nil || value.Kind != strictyaml.KindText || isSlug(value.Raw) {
		return
	}
	hint := ""
	if guess := slugOf(value.Raw); isSlug(guess) {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	c.fail(value, fmt.Sprintf("metadata.name is %s; expected lower-case words separated by dots, the area first, such as reinvocation.if-needed.again", strictyaml.Quote(value.Raw)), hint)
}

// isSlug reports whether a name has two or more parts, separated by dots, each of
// lower-case letters, digits and single hyphens.
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

// slugOf returns the slug that a wrong name probably means.
func slugOf(name string) string {
	return strings.NewReplacer(" ", "-", "_", "-", "/", ".").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// requirement checks the fields of the spec that describe the requirement.
func (c *checker) requirement(spec *strictyaml.Node) {
	levels := make([]string, 0, len(framework.Levels()))
	for _, level := range framework.Levels() {
		levels = append(levels, string(level))
	}
	c.enum(spec, "level", levels)
	if text := spec.Get("requirement"); text != nil && text.Kind == strictyaml.KindText && strings.TrimSpace(text.Raw) == "" {
		c.fail(text, "spec.requirement is empty; expected the requirement in one sentence", "")
	}
	if source := spec.Get("source"); source != nil && source.Kind == strictyaml.KindList && len(source.Items) == 0 {
		c.fail(source, "spec.source is empty; expected at least one URL", "")
	}
	for i, source := range spec.List("source") {
		if source.Kind == strictyaml.KindText && strings.TrimSpace(source.Raw) == "" {
			c.fail(source, fmt.Sprintf("spec.source[%d] is empty; expected a URL", i), "")
		}
	}
	for i, id := range spec.List("behaviours") {
		if id.Kind == strictyaml.KindText && !isBehaviour(id.Raw) {
			c.fail(id, fmt.Sprintf("spec.behaviours[%d] is %s; expected the ID of a behaviour, such as REINV-002 or PLUGIN-LimitRanger-003", i, strictyaml.Quote(id.Raw)), "")
		}
	}
	if since := spec.Get("since"); since != nil && since.Kind == strictyaml.KindText && !isMinor(since.Raw) {
		c.fail(since, fmt.Sprintf("spec.since is %s; expected a Kubernetes minor version", strictyaml.Quote(since.Raw)), `write it as "1.36"`)
	}
	for i, need := range spec.List("needs") {
		c.need(need, i)
	}
}

// need checks an item of spec.needs: a capability, or plugin/NAME.
func (c *checker) need(need *strictyaml.Node, i int) {
	if need.Kind != strictyaml.KindText || slices.Contains(framework.Capabilities(), need.Raw) {
		return
	}
	plugin, ok := strings.CutPrefix(need.Raw, framework.PluginPrefix)
	switch {
	case !ok:
		c.fail(need, fmt.Sprintf("spec.needs[%d] is %s; expected a capability that a target can have, or plugin/NAME", i, strictyaml.Quote(need.Raw)),
			suggestOrList(need.Raw, framework.Capabilities(), ""))
	case plugin == "" || strings.ContainsAny(plugin, " /,\"\\"):
		c.fail(need, fmt.Sprintf("spec.needs[%d] is %s; expected the name of an admission plugin after plugin/", i, strictyaml.Quote(need.Raw)), `write "plugin/LimitRanger", for example`)
	}
}

// fails checks spec.server.fails. A server that does not start serves nothing, so the
// scenario can have nothing that needs one.
func (c *checker) fails(spec *strictyaml.Node) {
	text := spec.Get("server").Get("fails")
	if text == nil || text.Kind != strictyaml.KindText {
		return
	}
	if text.Raw == "" {
		c.fail(text, "spec.server.fails is empty; expected a part of the log of the server that does not start", "")
	}
	if _, err := FailsMatcher(text.Raw); err != nil {
		c.fail(text, fmt.Sprintf("spec.server.fails is %s: %v; expected a text or a /regular expression/", strictyaml.Quote(text.Raw), err), "")
	}
	for _, name := range []string{"namespaces", "given", "givenFiles", "hooks", "conversion", "needs", "featureGate", "exclusive", "isolation", "when"} {
		value := spec.Get(name)
		if value == nil || value.Kind == strictyaml.KindList && len(value.Items) == 0 {
			continue
		}
		c.fail(value, fmt.Sprintf("spec.%s is set together with spec.server.fails; expected nothing that needs a running server", name), "remove it, and write when: []")
	}
}

// isBehaviour reports whether a text has the form AREA-001 or PLUGIN-Name-001.
func isBehaviour(id string) bool {
	parts := strings.Split(id, "-")
	number := parts[len(parts)-1]
	if len(number) != 3 || !strictyaml.Digits(number) {
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

// isUpper reports whether a text is a letter from A to Z, followed by such letters
// and digits.
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
	return ok && strictyaml.Digits(minor) && len(minor) <= 3 && (minor == "0" || minor[0] != '0')
}

// manifest checks that a Kubernetes manifest has an apiVersion and a kind.
func (c *checker) manifest(n *strictyaml.Node, where *place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	for _, name := range []string{"apiVersion", "kind"} {
		value := n.Get(name)
		switch {
		case value == nil:
			c.fail(n, fmt.Sprintf("%s has no %s; expected a Kubernetes manifest", where, name), fmt.Sprintf("add %q", name+":"))
		case value.Kind != strictyaml.KindText || value.Raw == "":
			described := value.Describe()
			if c.private {
				described = string(value.Kind)
			}
			c.fail(value, fmt.Sprintf("%s is %s; expected a text", where.field(name), described), "")
		}
	}
}
