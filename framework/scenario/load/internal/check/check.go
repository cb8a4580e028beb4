package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/manifests"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// Installed are the webhooks that are installed for all scenarios.
type Installed struct {
	// Names are their names.
	Names []string
	// Any is true if their names are not known. Then a call of any webhook can be expected.
	Any bool
}

// checker finds errors in a scenario. It reads the nodes of the document, so that each error has its
// position, and skips what the decoder has already reported.
type checker struct {
	*decode.Decoder
	origin    *manifests.Origin
	installed Installed
	// webhooks are the names in all configurations of the scenario. UnderTest says which of them are
	// webhooks under test.
	webhooks  []string
	underTest map[string]bool
	// converts is true if a CustomResourceDefinition has a conversion webhook.
	converts bool
	// policies and bindings are the names of the policies and bindings of the scenario.
	policies, bindings []string
	// serverFiles is the text of the files of spec.server, which can name webhooks too.
	serverFiles string
	// flagsToo are the ServerFlags of the Options. Written are the files that steps write.
	flagsToo []string
	written  []*serverFile
	// ownServer is true if the scenario has spec.server.
	ownServer bool
	// spaces are the names in spec.namespaces.
	spaces []string
	// inSteps is true while the placeholders of steps are checked.
	inSteps bool
	// ids are the lines of the steps, by ID.
	ids map[string]int
}

// Options say what is known about the run.
type Options struct {
	Installed Installed
	// ServerFlags are flags that spec.server can have besides those in serverFlags. "*" is any.
	ServerFlags []string
}

// Scenario checks a document and its manifests in other files. D has decoded the document, and gets
// the errors.
func Scenario(d *decode.Decoder, origin *manifests.Origin, options Options) {
	c := &checker{Decoder: d, origin: origin, installed: options.Installed, flagsToo: options.ServerFlags, underTest: map[string]bool{}, ids: map[string]int{}}
	c.check(origin.Root)
}

func (c *checker) check(root *strictyaml.Node) {
	c.Enum(root, "apiVersion", []string{scenario.APIVersion})
	c.Enum(root, "kind", []string{scenario.Kind, scenario.KindPolicyTest})
	c.name(root.Get("metadata").Get("name"))
	spec := root.Get("spec")
	c.ownServer = spec.Has("server")
	c.requirement(spec)
	c.Enum(spec, "isolation", []string{string(scenario.IsolationNone)})
	c.namespaces(spec)
	c.gatherWebhooks(spec)
	for i, manifest := range spec.List("given") {
		c.Manifest(manifest, decode.Root("spec").Field("given").Item(i))
	}
	c.hooks(spec.Get("hooks"), decode.Root("spec").Field("hooks"))
	c.conversion(spec.Get("conversion"))
	known := slices.Concat(c.webhooks, c.policies, c.bindings)
	for i, name := range spec.List("matchesNothing") {
		if name.Kind == strictyaml.KindText && !slices.Contains(known, name.Raw) {
			c.Fail(name, fmt.Sprintf("spec.matchesNothing[%d] is %s; expected the name of a webhook, policy or binding of the scenario", i, strictyaml.Quote(name.Raw)),
				decode.DidYouMean(name.Raw, known))
		}
	}
	c.fails(spec)
	if when := spec.Get("when"); when != nil {
		if when.Kind == strictyaml.KindList && len(when.Items) == 0 && spec.Get("server").Get("fails") == nil {
			c.Fail(when, "spec.when has no steps; expected at least one", "")
		}
		c.steps(when, decode.Root("spec").Field("when"))
	}
	c.server(spec.Get("server"), decode.Root("spec").Field("server"))
	c.placeholders(spec)
}

func (c *checker) name(value *strictyaml.Node) {
	if value == nil || value.Kind != strictyaml.KindText || decode.IsSlug(value.Raw) {
		return
	}
	hint := ""
	if guess := slugOf(value.Raw); decode.IsSlug(guess) {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	c.Fail(value, fmt.Sprintf("metadata.name is %s; expected lower-case words separated by dots, the area first, such as reinvocation.if-needed.again", strictyaml.Quote(value.Raw)), hint)
}

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
	c.Enum(spec, "level", levels)
	if text := spec.Get("requirement"); text != nil && text.Kind == strictyaml.KindText && strings.TrimSpace(text.Raw) == "" {
		c.Fail(text, "spec.requirement is empty; expected the requirement in one sentence", "")
	}
	if source := spec.Get("source"); source != nil && source.Kind == strictyaml.KindList && len(source.Items) == 0 {
		c.Fail(source, "spec.source is empty; expected at least one URL", "")
	}
	for i, source := range spec.List("source") {
		if source.Kind == strictyaml.KindText && strings.TrimSpace(source.Raw) == "" {
			c.Fail(source, fmt.Sprintf("spec.source[%d] is empty; expected a URL", i), "")
		}
	}
	for i, id := range spec.List("behaviours") {
		if id.Kind == strictyaml.KindText && !isBehaviour(id.Raw) {
			c.Fail(id, fmt.Sprintf("spec.behaviours[%d] is %s; expected the ID of a behaviour, such as REINV-002 or PLUGIN-LimitRanger-003", i, strictyaml.Quote(id.Raw)), "")
		}
	}
	if since := spec.Get("since"); since != nil && since.Kind == strictyaml.KindText && !isMinor(since.Raw) {
		c.Fail(since, fmt.Sprintf("spec.since is %s; expected a Kubernetes minor version", strictyaml.Quote(since.Raw)), `write it as "1.36"`)
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
		c.Fail(need, fmt.Sprintf("spec.needs[%d] is %s; expected a capability that a target can have, or plugin/NAME", i, strictyaml.Quote(need.Raw)),
			decode.SuggestOrList(need.Raw, framework.Capabilities(), ""))
	case plugin == "" || strings.ContainsAny(plugin, " /,\"\\"):
		c.Fail(need, fmt.Sprintf("spec.needs[%d] is %s; expected the name of an admission plugin after plugin/", i, strictyaml.Quote(need.Raw)), `write "plugin/LimitRanger", for example`)
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
		c.Fail(text, "spec.server.fails is empty; expected a part of the log of the server that does not start", "")
	}
	if _, err := scenario.FailsMatcher(text.Raw); err != nil {
		c.Fail(text, fmt.Sprintf("spec.server.fails is %s: %v; expected a text or a /regular expression/", strictyaml.Quote(text.Raw), err), "")
	}
	for _, name := range []string{"namespaces", "given", "givenFiles", "hooks", "conversion", "matchesNothing", "needs", "featureGate", "exclusive", "isolation", "when"} {
		value := spec.Get(name)
		if value == nil || value.Kind == strictyaml.KindList && len(value.Items) == 0 {
			continue
		}
		c.Fail(value, fmt.Sprintf("spec.%s is set together with spec.server.fails; expected nothing that needs a running server", name), "remove it, and write when: []")
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
