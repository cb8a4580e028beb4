package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// gatherWebhooks notes the webhooks of every configuration in a scenario: given,
// installed, or written by a step.
func (c *checker) gatherWebhooks(spec *node) {
	for _, manifest := range append(c.files, spec.list("given")...) {
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
				if service := serviceOf(webhook); service != "" {
					c.elsewhere[name] = service
				} else {
					c.ours[name] = true
				}
			}
		}
	case "CustomResourceDefinition":
		conversion := manifest.get("spec").get("conversion")
		c.converts = c.converts || conversion.text("strategy") == "Webhook"
	}
}

// webhook checks that some configuration has a webhook of that name.
func (c *checker) webhook(name string, line, column int) {
	if c.notOurs(name) {
		c.errors = append(c.errors, &Error{
			c.file, line, column,
			fmt.Sprintf("%s is a webhook under test, of Service %s, whose calls are not seen and whose answers are its own; expected a webhook without clientConfig", shown(name), c.elsewhere[name]),
			"expect what it does to the answer: object, message, warnings",
		})
		return
	}
	if slices.Contains(c.webhooks, name) || name != "" && strings.Contains(c.loose, name) {
		return
	}
	known := slices.Compact(slices.Sorted(slices.Values(c.webhooks)))
	c.errors = append(c.errors, &Error{
		c.file, line, column,
		fmt.Sprintf("no webhook is called %s; expected one of a configuration that given, install or a step writes", shown(name)),
		suggestOrList(name, known, "no configuration of this scenario has webhooks"),
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
	c.playable(n, where)
	c.meanwhile(n, where)
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
		c.meanwhile(item, where.field("replies").item(i))
	}
}

func (c *checker) meanwhile(reply *node, where *place) {
	if steps := reply.get("meanwhile"); steps != nil {
		c.steps(steps, where.field("meanwhile"))
	}
}

// playable checks that a Hook can carry out a script, by its own word.
func (c *checker) playable(n *node, where *place) {
	quiet := decoder{file: c.file, plans: c.plans}
	var decoded Hook
	quiet.structure(n, reflect.ValueOf(&decoded).Elem(), where)
	if len(quiet.errors) > 0 {
		return // which the decoder has reported
	}
	script := hook.Script{Replies: []hook.Reply{decoded.Reply.Reply}}
	inTurn := n.has("replies")
	if inTurn {
		script.Replies = nil
		for _, reply := range decoded.Replies {
			script.Replies = append(script.Replies, reply.Reply)
		}
	}
	for _, problem := range invalidFields(script.Validate()) {
		path, here := []any{}, where
		if inTurn {
			path, here = append(path, "replies", problem.Reply), where.field("replies").item(problem.Reply)
		}
		for name := range strings.SplitSeq(problem.Field, ".") {
			path, here = append(path, name), here.field(name)
		}
		c.fail(n.find(path), fmt.Sprintf("%s: %s", here, problem.Problem), "")
	}
}

// invalidFields returns what Script.Validate joined.
func invalidFields(err error) []*hook.InvalidField {
	var all []*hook.InvalidField
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // its documented form
		for _, one := range joined.Unwrap() {
			var field *hook.InvalidField
			if errors.As(one, &field) {
				all = append(all, field)
			}
		}
	}
	return all
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
