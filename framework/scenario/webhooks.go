package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// gatherWebhooks notes the webhooks of every configuration in a scenario: given,
// installed, or written by a step.
func (c *checker) gatherWebhooks(spec *node) {
	for _, manifest := range spec.list("given") {
		c.gatherManifest(manifest)
	}
	c.gatherSteps(spec.get("when"))
	c.gatherHooks(spec.get("hooks"))
	if files := spec.get("server").get("files"); files != nil {
		for i := range files.fields {
			c.loose += files.fields[i].value.raw + "\n"
		}
	}
}

func (c *checker) gatherSteps(steps *node) {
	if steps == nil {
		return
	}
	for _, step := range steps.items {
		for _, verb := range []string{"create", "update", "apply"} {
			c.gatherManifest(step.get(verb))
		}
		for _, manifest := range step.list("install") {
			c.gatherManifest(manifest)
		}
		c.gatherSteps(step.get("parallel"))
		c.gatherHooks(step.get("script"))
	}
}

func (c *checker) gatherHooks(hooks *node) {
	if hooks == nil {
		return
	}
	for i := range hooks.fields {
		script := hooks.fields[i].value
		c.gatherSteps(script.get("meanwhile"))
		for _, reply := range script.list("replies") {
			c.gatherSteps(reply.get("meanwhile"))
		}
	}
}

// gatherManifest notes the webhooks of one manifest.
func (c *checker) gatherManifest(manifest *node) {
	switch manifest.text("kind") {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, webhook := range manifest.list("webhooks") {
			if name := webhook.text("name"); name != "" {
				c.webhooks = append(c.webhooks, name)
			}
		}
	case "CustomResourceDefinition":
		conversion := manifest.get("spec").get("conversion")
		c.converts = c.converts || conversion.text("strategy") == "Webhook"
	}
}

// webhook checks that some configuration has a webhook of that name.
func (c *checker) webhook(name string, line, column int) {
	if slices.Contains(c.webhooks, name) || name != "" && strings.Contains(c.loose, name) {
		return
	}
	known := slices.Compact(slices.Sorted(slices.Values(c.webhooks)))
	c.errors = append(c.errors, &Error{
		c.file, line, column,
		fmt.Sprintf("no webhook is called %s; expected one of a configuration that given, install or a step writes", shown(name)),
		suggest(name, known, "no configuration of this scenario has webhooks"),
	})
}

func (c *checker) webhookNode(n *node) {
	if n != nil && n.kind == kindText {
		c.webhook(n.raw, n.line, n.column)
	}
}

// hooks checks scripts by webhook name.
func (c *checker) hooks(n *node, where *place) {
	if n == nil {
		return
	}
	for i := range n.fields {
		entry := &n.fields[i]
		here := where.field(entry.name)
		c.webhook(entry.name, entry.line, entry.column)
		c.script(entry.value, here)
	}
}

// script checks the script of one webhook.
func (c *checker) script(n *node, where *place) {
	c.reply(n, where, true)
	replies := n.get("replies")
	if replies == nil {
		return
	}
	if replies.kind == kindList && len(replies.items) == 0 {
		c.fail(replies, fmt.Sprintf("%s.replies is empty; expected at least one reply", where), "remove the field to allow every request")
	}
	for i := range n.fields {
		if other := &n.fields[i]; other.name != "replies" && known[Reply](c.plans, other.name) {
			c.errors = append(c.errors, &Error{
				c.file, other.line, other.column,
				fmt.Sprintf("%s has replies and %s; expected one reply or several", where, other.name),
				"move " + other.name + " into the replies that it is for",
			})
		}
	}
	for i, item := range replies.items {
		c.reply(item, where.field("replies").item(i), len(replies.items) == 1)
	}
}

// reply checks one reply. A Fault of the connection holds for every call, so it
// must be in the only one.
func (c *checker) reply(n *node, where *place, only bool) {
	if fault := n.get("fault"); fault != nil && fault.kind == kindText {
		c.fault(fault, only)
	}
	if barrier, size := n.get("barrier"), n.get("barrierSize"); barrier != nil && size == nil {
		c.fail(barrier, fmt.Sprintf("%s has a barrier and no barrierSize; expected how many calls meet at it", where), `add "barrierSize:"`)
	} else if size != nil && barrier == nil {
		c.fail(size, fmt.Sprintf("%s has a barrierSize and no barrier; expected the name that the calls share", where), `add "barrier:"`)
	} else if size != nil && size.kind == kindInteger && size.value.(int64) < 1 { //nolint:forcetypeassert // kindInteger is an int64
		c.fail(size, fmt.Sprintf("%s.barrierSize is %s; expected at least 1", where, size.raw), "")
	}
	if meanwhile := n.get("meanwhile"); meanwhile != nil {
		c.steps(meanwhile, where.field("meanwhile"))
	}
}

// conversion checks how custom resources are converted.
func (c *checker) conversion(n *node) {
	if n == nil {
		return
	}
	if !c.converts {
		c.fail(n, "spec.conversion has nothing to convert; expected a CustomResourceDefinition with the conversion strategy Webhook", "add it to spec.given")
	}
	possible := namesOf(conversionFaults())
	if fault := n.get("fault"); fault != nil && fault.kind == kindText && !slices.Contains(possible, fault.raw) {
		c.fail(fault, fmt.Sprintf("unknown fault of a conversion %s; expected one of %s", shown(fault.raw), strings.Join(possible, ", ")),
			didYouMean(fault.raw, possible))
	}
}

// conversionFaults are the Faults that a hook.Conversion can have.
func conversionFaults() []hook.Fault {
	return []hook.Fault{hook.HTTP500, hook.Hang, hook.Reset, hook.Empty, hook.NotJSON, hook.Refused}
}

func namesOf(faults []hook.Fault) []string {
	names := make([]string, len(faults))
	for i, fault := range faults {
		names[i] = string(fault)
	}
	return names
}

func (c *checker) fault(n *node, only bool) {
	names := namesOf(hook.Faults())
	switch {
	case !slices.Contains(names, n.raw):
		message := fmt.Sprintf("unknown fault %s; expected one of %s", shown(n.raw), strings.Join(names, ", "))
		c.fail(n, message, didYouMean(n.raw, names))
	case hook.Fault(n.raw).OfConnection() && !only:
		c.fail(n, fmt.Sprintf("the fault %s is one of several replies; expected it alone, since it holds for the connection and so for every call", n.raw),
			"make it the hook's only reply")
	}
}
