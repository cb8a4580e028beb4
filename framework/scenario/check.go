package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// checker finds errors in the meaning of a scenario that has the right format: names of what does not exist, and
// expectations that nothing can meet. It checks the structs that were decoded.
type checker struct {
	*decoder
	scenario *Scenario
	root     *document.Node
	options  LoadOptions
	// webhooks, policies and bindings are the names in all configurations of the scenario. UnderTest says which
	// webhooks are webhooks under test.
	webhooks, policies, bindings []string
	underTest                    map[string]bool
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
	c.gatherNames()
	for _, set := range d.Set {
		switch value := set.Struct.(type) {
		case *Spec:
			c.spec(value, set)
		case *Step:
			c.step(set)
		case *Files:
			if one.Spec.Server == nil {
				c.Fail(set.Node, fmt.Sprintf("%s needs an API server with files; expected spec.server", set.Path), "write the files in spec.server.files")
			}
		case *Metrics:
			if strings.HasPrefix(value.Name, "apiserver_admission_webhook_") {
				c.called(set.Node.Get("labels").Get("name"))
			}
		case *Expectation:
			c.called(set.Get("overlapping"))
		case *Calls:
			c.called(set.Get("exclude"))
		case *Call:
			c.called(set.Get("webhook"))
		case *RefusedBy:
			c.called(set.Get("webhook"))
			c.exist("policy", set.Get("policy"), c.policies)
			c.exist("binding", set.Get("binding"), c.bindings)
		}
	}
	c.checkServers(options.AllowServerFlags)
	c.placeholders(c.root.Get("spec"))
}

// spec checks the fields of the spec itself.
func (c *checker) spec(spec *Spec, set document.Decoded) {
	for i, manifest := range set.Node.List("given") {
		c.manifest(manifest, set.At("given").Item(i))
	}
	for i, item := range set.Node.List("namespaces") {
		if slices.ContainsFunc(spec.Namespaces[:i], func(other Namespace) bool { return other.Name == item.Text("name") }) {
			c.Fail(item.Get("name"), fmt.Sprintf("another namespace has the name %s; expected a unique name", document.Quote(item.Text("name"))), "")
		}
	}
	c.scripts(set.Get("hooks"), set.At("hooks"))
	c.exist("webhook, policy or binding", set.Get("matchesNothing"), slices.Concat(c.webhooks, c.policies, c.bindings))
	if text := set.Node.Get("server").Get("fails"); text != nil {
		if _, err := FailsMatcher(text.Raw); err != nil {
			c.Fail(text, fmt.Sprintf("spec.server.fails: %v; expected a string or a /regular expression/", err), "")
		}
	}
	if len(spec.When) > 0 && !slices.ContainsFunc(spec.When, func(step Step) bool { return !step.Control }) {
		c.Fail(set.Node.List("when")[0].Get("control"), "every step is a control, so that the scenario cannot fail; expected a step that tests the requirement", "remove control from that step")
	}
}

// step checks a step.
func (c *checker) step(set document.Decoded) {
	if id := set.Get("id"); id != nil {
		if line, twice := c.ids[id.Raw]; twice {
			c.Fail(id, fmt.Sprintf("another step has the ID %s; expected a unique ID", document.Quote(id.Raw)), fmt.Sprintf("the other is in line %d: rename one", line))
		} else {
			c.ids[id.Raw] = id.Line
		}
	}
	for _, verb := range []string{"create", "update", "apply"} {
		c.manifest(set.Get(verb), set.At(verb))
	}
	for i, manifest := range set.Node.List("install") {
		c.manifest(manifest, set.At("install").Item(i))
	}
	c.scripts(set.Get("script"), set.At("script"))
}

// gatherNames notes the webhooks, policies and bindings of every configuration in a scenario: given,
// installed, or written by a step.
func (c *checker) gatherNames() {
	for _, manifest := range c.scenario.origin.given {
		c.gather(manifest, true)
	}
	for _, set := range c.Set {
		if _, ok := set.Struct.(*Step); !ok {
			continue
		}
		for _, verb := range []string{"create", "update", "apply"} {
			c.gather(set.Get(verb), false)
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
	name := manifest.Get("metadata").Text("name")
	switch manifest.Text("kind") {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, webhook := range manifest.List("webhooks") {
			name := webhook.Text("name")
			c.webhooks = append(c.webhooks, name)
			c.underTest[name] = c.underTest[name] || installed && answersItself(webhook.Get("clientConfig"))
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		c.policies = append(c.policies, name)
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		c.bindings = append(c.bindings, name)
	}
}

// exist checks that some configuration, or a file of spec.server, has something of each name in a value: a string, a
// list of them, or nil. What says what it is, and known are all its names.
func (c *checker) exist(what string, n *document.Node, known []string) {
	if n == nil {
		return
	}
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	for _, name := range n.AsList().Items {
		if !slices.Contains(known, name.Raw) && (name.Raw == "" || !strings.Contains(c.serverFiles, name.Raw)) {
			c.unknownName(name, what, name.Raw, known)
		}
	}
}

// unknownName reports a name that no manifest defines.
func (d *decoder) unknownName(at *document.Node, what, name string, known []string) {
	d.Fail(at, fmt.Sprintf("no %s has the name %s; expected one in the manifests of this test", what, document.Quote(name)), document.SuggestOrList(name, known, "no manifest has one"))
}

// called checks the names of webhooks that can be called: also those that are installed for all scenarios.
func (c *checker) called(n *document.Node) {
	if !c.options.AnyInstalled {
		c.exist("webhook", n, slices.Concat(c.webhooks, c.options.Installed))
	}
}

// scripts checks a map of scripts: the names of the webhooks, and that a webhook under test, whose Hook is a proxy, gets
// no answer.
func (c *checker) scripts(n *document.Node, where document.Path) {
	for _, script := range n.Entries() {
		c.exist("webhook", script.Key, c.webhooks)
		for _, reply := range append(script.Value.List("replies"), script.Value) {
			for _, field := range reply.Fields {
				answers := slices.Contains([]string{"allowed", "status", "patch", "patchType", "warnings", "auditAnnotations", "review"}, field.Name)
				if answers && c.underTest[script.Name] {
					c.Fail(field.Value, fmt.Sprintf("%s has no effect in %s, because the webhook under test answers; expected fault, http, delay, barrier or meanwhile", field.Name, where.Field(script.Name)), "")
				}
			}
		}
	}
}

// answersItself reports whether a webhook is one under test: its clientConfig does not lead to a Hook.
func answersItself(client *document.Node) bool {
	if service := client.Get("service"); service != nil {
		namespace := service.Text("namespace")
		return service.Text("name") != "" && namespace != "" && !strings.Contains(namespace, "$(")
	}
	address := client.Text("url")
	return strings.HasPrefix(address, "https://") && !strings.Contains(address, "$(hooks.")
}
