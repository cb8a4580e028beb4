package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// checker finds errors in a scenario that the rules of single fields do not find: names without a webhook,
// steps with two actions, expectations that nothing can meet. It checks the structs that were decoded, and
// skips what the decoder has already reported.
type checker struct {
	*decoder
	scenario *Scenario
	root     *document.Node
	options  LoadOptions
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
	// inSteps is true while the placeholders of steps are checked.
	inSteps bool
	// ids are the lines of the steps, by ID.
	ids map[string]int
}

// checkScenario checks a scenario that was decoded.
func (d *decoder) checkScenario(one *Scenario, root *document.Node, options LoadOptions) {
	c := &checker{decoder: d, scenario: one, root: root, options: options, underTest: map[string]bool{}, ids: map[string]int{}}
	c.compare()
	c.gatherWebhooks()
	for _, set := range d.Set {
		switch value := set.Struct.(type) {
		case *Spec:
			c.spec(value, set)
		case *Hook:
			c.noAnswer(set)
		case *Step:
			c.step(value, set)
		case *Files:
			c.filesStep(set)
		case *Metrics:
			c.metrics(value, set)
		case *Expectation:
			c.expectation(value, set)
		case *Calls:
			c.called(set.Get("exclude"))
		case *Call:
			c.called(set.Get("webhook"))
		case *RefusedBy:
			c.refusedBy(set)
		}
	}
	c.checkServers(options.AllowServerFlags)
	c.placeholders(c.root.Get("spec"))
}

// spec checks the fields of the spec itself.
func (c *checker) spec(spec *Spec, set *document.Decoded) {
	for i, manifest := range set.Node.List("given") {
		c.manifest(manifest, set.At("given").Item(i))
	}
	c.namespaces(set.Get("namespaces"))
	c.scripts(set.Get("hooks"))
	known := slices.Concat(c.webhooks, c.policies, c.bindings)
	for i, name := range set.Get("matchesNothing").Texts() {
		if !slices.Contains(known, name.Raw) {
			c.Fail(name, fmt.Sprintf("spec.matchesNothing[%d] is %s; expected the name of a webhook, policy or binding of the scenario", i, document.Quote(name.Raw)),
				document.DidYouMean(name.Raw, known))
		}
	}
	if conversion := set.Node.Get("conversion"); conversion != nil && !c.converts {
		c.Fail(conversion, "spec.conversion has nothing to convert; expected a CustomResourceDefinition with the conversion strategy Webhook", "add it to spec.given")
	}
	c.fails(spec, set)
}

// namespaces checks that the names of spec.namespaces are unique.
func (c *checker) namespaces(list *document.Node) {
	if list == nil {
		return
	}
	var names []string
	for _, item := range list.Items {
		name := item.Get("name")
		if name == nil || name.Kind != document.KindText {
			continue // the schema has reported it
		}
		if slices.Contains(names, name.Raw) {
			c.Fail(name, fmt.Sprintf("another namespace has the name %s; expected a unique name", document.Quote(name.Raw)), "")
		}
		names = append(names, name.Raw)
	}
}

// fails checks spec.server.fails.
func (c *checker) fails(spec *Spec, set *document.Decoded) {
	text := set.Node.Get("server").Get("fails")
	if text == nil || text.Refused() {
		return
	}
	if _, err := FailsMatcher(spec.Server.Fails); err != nil {
		c.Fail(text, fmt.Sprintf("spec.server.fails is %s: %v; expected a string or a /regular expression/", document.Quote(text.Raw), err), "")
	}
}

// gatherWebhooks notes the webhooks of every configuration in a scenario: given,
// installed, or written by a step.
func (c *checker) gatherWebhooks() {
	for _, manifest := range c.scenario.origin.given {
		c.gather(manifest, true)
	}
	for _, set := range c.Set {
		if _, ok := set.Struct.(*Step); !ok {
			continue
		}
		for _, verb := range []string{"create", "update", "apply"} {
			c.gather(set.Node.Get(verb), false)
		}
		for _, manifest := range set.Node.List("install") {
			c.gather(manifest, true)
		}
	}
	if server := c.scenario.Spec.Server; server != nil {
		for _, content := range server.Files {
			c.serverFiles += content + "\n"
		}
	}
}

// gather notes what a manifest defines. Installed is true if it is installed, and false if it is
// the object of a request.
func (c *checker) gather(manifest *document.Node, installed bool) {
	switch manifest.Text("kind") {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, webhook := range manifest.List("webhooks") {
			if name := webhook.Text("name"); name != "" {
				c.webhooks = append(c.webhooks, name)
				c.underTest[name] = c.underTest[name] || installed && answersItself(webhook)
			}
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		c.policies = append(c.policies, manifest.Get("metadata").Text("name"))
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		c.bindings = append(c.bindings, manifest.Get("metadata").Text("name"))
	case "CustomResourceDefinition":
		conversion := manifest.Get("spec").Get("conversion")
		c.converts = c.converts || conversion.Text("strategy") == "Webhook"
	}
}

// webhook checks that some configuration has a webhook of a name. Other are further names.
func (c *checker) webhook(at *document.Node, name string, other ...string) {
	known := slices.Compact(slices.Sorted(slices.Values(append(other, c.webhooks...))))
	if slices.Contains(known, name) || name != "" && strings.Contains(c.serverFiles, name) {
		return
	}
	c.Fail(at, fmt.Sprintf("no webhook has the name %s; expected one of a configuration in given, install or a step", document.Quote(name)),
		document.SuggestOrList(name, known, "no configuration of this scenario has webhooks"))
}

// called checks the name of a webhook that can be called, or a list of them: also one that is installed for all
// scenarios.
func (c *checker) called(n *document.Node) {
	if n == nil || c.options.AnyInstalled {
		return
	}
	for _, name := range n.AsList().Texts() {
		c.webhook(name, name.Raw, c.options.Installed...)
	}
}

// scripts checks the names of the webhooks in a map of scripts.
func (c *checker) scripts(n *document.Node) {
	if n == nil {
		return
	}
	for _, field := range n.Fields {
		c.webhook(field.Key, field.Name)
	}
}

// noAnswer checks the script of a webhook under test, whose Hook is a proxy: the webhook answers itself.
func (c *checker) noAnswer(set *document.Decoded) {
	if !c.underTest[set.Path.Name()] || !set.Node.Valid() {
		return
	}
	replies, where := []*document.Node{set.Node}, set.Path
	if list := set.Node.List("replies"); list != nil {
		replies = list
	}
	for i, reply := range replies {
		if set.Node.Has("replies") {
			where = set.At("replies").Item(i)
		}
		for _, field := range reply.Fields {
			if slices.Contains([]string{"allowed", "status", "patch", "patchType", "warnings", "auditAnnotations", "review"}, field.Name) {
				c.Fail(field.Value, fmt.Sprintf("%s has no effect, because the webhook under test answers; expected fault, http, delay, barrier or meanwhile", where.Field(field.Name)), "")
			}
		}
	}
}

// answersItself reports whether a webhook is one under test: its clientConfig does not lead to a Hook.
func answersItself(webhook *document.Node) bool {
	client := webhook.Get("clientConfig")
	if service := client.Get("service"); service != nil {
		namespace := service.Text("namespace")
		return service.Text("name") != "" && namespace != "" && !strings.Contains(namespace, "$(")
	}
	address := client.Text("url")
	return strings.HasPrefix(address, "https://") && !strings.Contains(address, "$(hooks.")
}
