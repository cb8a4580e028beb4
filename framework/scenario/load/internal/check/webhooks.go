package check

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// gatherWebhooks notes the webhooks of every configuration in a scenario: given,
// installed, or written by a step.
func (c *checker) gatherWebhooks(spec *strictyaml.Node) {
	var manifests []*strictyaml.Node
	for _, file := range c.origin.Given {
		manifests = append(manifests, file.Node)
	}
	for _, manifest := range append(manifests, spec.List("given")...) {
		c.gatherManifest(manifest, true)
	}
	c.gatherSteps(spec.Get("when"))
	c.gatherHooks(spec.Get("hooks"))
	if files := spec.Get("server").Get("files"); files != nil {
		for i := range files.Fields {
			c.serverFiles += files.Fields[i].Value.Raw + "\n"
		}
	}
}

func (c *checker) gatherSteps(steps *strictyaml.Node) {
	if steps == nil {
		return
	}
	for _, step := range steps.Items {
		for _, verb := range []string{"create", "update", "apply"} {
			c.gatherManifest(step.Get(verb), false)
		}
		for _, manifest := range step.List("install") {
			c.gatherManifest(manifest, true)
		}
		c.gatherSteps(step.Get("parallel"))
		c.gatherHooks(step.Get("script"))
	}
}

func (c *checker) gatherHooks(hooks *strictyaml.Node) {
	if hooks == nil {
		return
	}
	for i := range hooks.Fields {
		script := hooks.Fields[i].Value
		c.gatherSteps(script.Get("meanwhile"))
		for _, reply := range script.List("replies") {
			c.gatherSteps(reply.Get("meanwhile"))
		}
	}
}

// gatherManifest notes what a manifest defines. Installed is true if it is installed, and false if it is
// the object of a request.
func (c *checker) gatherManifest(manifest *strictyaml.Node, installed bool) {
	switch manifest.Text("kind") {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, webhook := range manifest.List("webhooks") {
			if name := webhook.Text("name"); name != "" {
				c.webhooks = append(c.webhooks, name)
				c.underTest[name] = c.underTest[name] || installed && isUnderTest(webhook)
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

// isUnderTest reports whether a webhook is one under test, which answers itself.
func isUnderTest(webhook *strictyaml.Node) bool {
	client := webhook.Get("clientConfig")
	service := client.Get("service")
	return grammar.ServiceName(service.Text("namespace"), service.Text("name")) != "" || grammar.HostPort(client.Text("url")) != ""
}

// webhook checks that some configuration has a webhook of that name. Other are further names.
func (c *checker) webhook(name string, line, column int, other ...string) {
	at := &strictyaml.Node{Line: line, Column: column}
	known := slices.Compact(slices.Sorted(slices.Values(append(other, c.webhooks...))))
	if slices.Contains(known, name) || name != "" && strings.Contains(c.serverFiles, name) {
		return
	}
	c.Fail(at, fmt.Sprintf("no webhook has the name %s; expected one of a configuration in given, install or a step", strictyaml.Quote(name)),
		decode.SuggestOrList(name, known, "no configuration of this scenario has webhooks"))
}

// calledWebhook checks the name of a webhook that can be called: also one that is installed for all
// scenarios.
func (c *checker) calledWebhook(n *strictyaml.Node) {
	if n != nil && n.Kind == strictyaml.KindText && !c.installed.Any {
		c.webhook(n.Raw, n.Line, n.Column, c.installed.Names...)
	}
}

// hooks checks scripts by webhook name.
func (c *checker) hooks(n *strictyaml.Node, where *decode.Place) {
	if n == nil {
		return
	}
	for i := range n.Fields {
		entry := &n.Fields[i]
		c.webhook(entry.Name, entry.Line, entry.Column)
		c.script(entry.Name, entry.Value, where.Field(entry.Name))
	}
}

// script checks the script of the webhook of that name.
func (c *checker) script(webhook string, n *strictyaml.Node, where *decode.Place) {
	c.playable(n, where, c.underTest[webhook])
	c.meanwhile(n, where)
	replies := n.Get("replies")
	if replies == nil {
		return
	}
	if replies.Kind == strictyaml.KindList && len(replies.Items) == 0 {
		c.Fail(replies, fmt.Sprintf("%s.replies is empty; expected at least one reply", where), "remove the field to allow every request")
	}
	for i := range n.Fields {
		if other := &n.Fields[i]; other.Name != "replies" && grammar.HasField[scenario.Reply](c.Structs, other.Name) {
			c.FailField(other, fmt.Sprintf("%s has replies and %s; expected one reply or several", where, other.Name),
				"move "+other.Name+" into the replies that need it")
		}
	}
	for i, item := range replies.Items {
		c.meanwhile(item, where.Field("replies").Item(i))
	}
}

func (c *checker) meanwhile(reply *strictyaml.Node, where *decode.Place) {
	if steps := reply.Get("meanwhile"); steps != nil {
		c.steps(steps, where.Field("meanwhile"))
	}
}

// playable checks with package hook that a Hook can carry out a script. The Hook of a webhook under test
// is a proxy.
func (c *checker) playable(n *strictyaml.Node, where *decode.Place, underTest bool) {
	quiet := decode.Decoder{File: c.File, Structs: c.Structs}
	var decoded scenario.Hook
	quiet.Struct(n, reflect.ValueOf(&decoded).Elem(), where)
	if len(quiet.Errors) > 0 {
		return // the decoder has reported them
	}
	script := hook.Script{Replies: []hook.Reply{decoded.Reply.Reply}}
	inTurn := n.Has("replies")
	if inTurn {
		script.Replies = nil
		for _, reply := range decoded.Replies {
			script.Replies = append(script.Replies, reply.Reply)
		}
	}
	err := script.Validate()
	if underTest {
		err = script.ValidateForUpstream()
	}
	for _, problem := range invalidFields(err) {
		path, here := []any{}, where
		if inTurn {
			path, here = append(path, "replies", problem.Reply), where.Field("replies").Item(problem.Reply)
		}
		for name := range strings.SplitSeq(problem.Field, ".") {
			path, here = append(path, name), here.Field(name)
		}
		c.Fail(n.Find(path), fmt.Sprintf("%s: %s", here, problem.Problem), "")
	}
}

// invalidFields returns the errors that Script.Validate joined.
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

// conversion checks the conversion of custom resources.
func (c *checker) conversion(n *strictyaml.Node) {
	if n == nil {
		return
	}
	if !c.converts {
		c.Fail(n, "spec.conversion has nothing to convert; expected a CustomResourceDefinition with the conversion strategy Webhook", "add it to spec.given")
	}
	possible := namesOf(conversionFaults())
	if fault := n.Get("fault"); fault != nil && fault.Kind == strictyaml.KindText && !slices.Contains(possible, fault.Raw) {
		c.Fail(fault, fmt.Sprintf("unknown fault of a conversion %s; expected one of %s", strictyaml.Quote(fault.Raw), strings.Join(possible, ", ")),
			decode.DidYouMean(fault.Raw, possible))
	}
}

// conversionFaults are the Faults that a hook.Conversion supports.
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
