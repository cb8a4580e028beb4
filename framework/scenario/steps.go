package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/match"
)

// The actions of a step. Requests are those that send one request, which the
// step's other fields describe.
func requestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

func otherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait"}
}

// requestFields are the fields of a step that say how its request is sent.
func requestFields() []string {
	return []string{"subresource", "parent", "name", "namespace", "as", "dryRun", "options", "body", "contentType", "eventually"}
}

// patchKinds are the fields of a Patch of which it has one.
func patchKinds() []string { return []string{"json", "merge", "strategic"} }

// steps checks a list of steps.
func (c *checker) steps(n *node, where *place) {
	for i, step := range n.items {
		if step.kind == kindMapping {
			c.step(step, where.item(i))
		}
	}
}

func (c *checker) step(n *node, where *place) {
	action, ok := c.action(n, where)
	c.stepID(n.get("id"), where)
	if ok && slices.Contains(otherActions(), action) {
		c.noRequest(n, action, where)
	}
	for _, verb := range []string{"create", "update", "apply"} {
		c.manifest(n.get(verb), where.field(verb))
	}
	for i, manifest := range n.list("install") {
		c.manifest(manifest, where.field("install").item(i))
	}
	for _, verb := range []string{"get", "patch", "delete", "connect", "wait"} {
		c.named(n, n.get(verb), where.field(verb))
	}
	for i, reference := range n.list("remove") {
		c.named(nil, reference, where.field("remove").item(i))
	}
	c.patch(n.get("patch"), where.field("patch"))
	c.operators(n.get("wait").get("object"), where.field("wait").field("object"))
	if script := n.get("script"); script != nil {
		c.hooks(script, where.field("script"))
	}
	if parallel := n.get("parallel"); parallel != nil {
		c.steps(parallel, where.field("parallel"))
		for i, inner := range parallel.items {
			c.apart(inner.get("then"), where.field("parallel").item(i).field("then"))
		}
	}
	c.expectation(n.get("then"), where.field("then"))
}

// action returns the one action of a step.
func (c *checker) action(n *node, where *place) (string, bool) {
	all := append(requestActions(), otherActions()...)
	var found []string
	for i := range n.fields {
		name := n.fields[i].name
		if slices.Contains(all, name) {
			found = append(found, name)
		} else if !known[Step](c.plans, name) {
			return "", false // maybe a misspelt action, which the decoder reported
		}
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		c.fail(n, fmt.Sprintf("%s has no action; expected one of %s", where, strings.Join(all, ", ")), "")
	default:
		c.fail(n, fmt.Sprintf("%s has the actions %s; expected one", where, quote(found)), "make a step of each")
	}
	return "", false
}

func (c *checker) stepID(id *node, where *place) {
	if id == nil || id.kind != kindText {
		return
	}
	if id.raw == "" || strings.ContainsAny(id.raw, ".()$ ") {
		c.fail(id, fmt.Sprintf("%s.id is %s; expected a name without dots, spaces, $ and parentheses", where, shown(id.raw)), "")
		return
	}
	if line, twice := c.ids[id.raw]; twice {
		c.fail(id, fmt.Sprintf("the step ID %s is there twice; expected one step of that ID", shown(id.raw)), fmt.Sprintf("the first is in line %d: rename one", line))
		return
	}
	c.ids[id.raw] = id.line
}

// noRequest refuses fields that mean nothing for an action that sends no request
// of its own, since a check that nobody makes would pass.
func (c *checker) noRequest(n *node, action string, where *place) {
	refused := requestFields()
	if action != "parallel" {
		refused = append(refused, "then")
	}
	for i := range n.fields {
		if name := n.fields[i].name; slices.Contains(refused, name) {
			c.errors = append(c.errors, &Error{
				c.file, n.fields[i].line, n.fields[i].column,
				fmt.Sprintf("%s has %s beside %s; expected it beside a request only: %s", where, name, action, strings.Join(requestActions(), ", ")),
				"move it to the step that sends the request",
			})
		}
	}
}

// apart refuses expectations about calls of one of several requests sent at the
// same time: which request a call belongs to cannot be told.
func (c *checker) apart(then *node, where *place) {
	if then == nil {
		return
	}
	for i := range then.fields {
		entry := &then.fields[i]
		if slices.Contains([]string{"calls", "distinct", "serial", "overlapping", "answeredLast"}, entry.name) {
			c.errors = append(c.errors, &Error{
				c.file, entry.line, entry.column,
				fmt.Sprintf("%s has %s; expected it of all the parallel requests together", where, entry.name),
				"move it to the then beside parallel",
			})
		}
	}
}

// named checks that a reference to one object has a name, its own or the step's.
func (c *checker) named(step, reference *node, where *place) {
	if reference == nil || reference.kind != kindMapping || reference.has("name") || step.has("name") {
		return
	}
	hint := `add "name:"`
	switch where.name {
	case "delete":
		hint += ", or use deleteCollection"
	case "get":
		hint += ", or use list"
	}
	c.fail(reference, fmt.Sprintf("%s has no name; expected that of one object", where), hint)
}

func (c *checker) patch(n *node, where *place) {
	if n == nil || n.kind != kindMapping {
		return
	}
	count := 0
	for _, name := range patchKinds() {
		if n.has(name) {
			count++
		}
	}
	if count != 1 {
		c.fail(n, fmt.Sprintf("%s has %d patches; expected one of %s", where, count, strings.Join(patchKinds(), ", ")), "")
	}
}

// expectation checks what is expected of a step.
func (c *checker) expectation(n *node, where *place) {
	if n == nil {
		return
	}
	for _, name := range []string{"details", "object", "warnings", "audit"} {
		c.operators(n.get(name), where.field(name))
	}
	if warnings := n.get("warnings"); warnings != nil && warnings.kind != kindList && warnings.kind != kindMapping {
		c.wrong(warnings, where.field("warnings"), kindList)
	}
	for _, name := range n.list("overlapping") {
		c.webhookNode(name)
	}
	calls := n.get("calls")
	if calls == nil {
		return
	}
	if calls.kind == kindList {
		c.noCalls(calls, where.field("calls"))
		c.calls(calls, where.field("calls"))
		return
	}
	for _, name := range []string{"inOrder", "anyOrder", "include"} {
		if list := calls.get(name); list != nil {
			c.noCalls(list, where.field("calls").field(name))
			c.calls(list, where.field("calls").field(name))
		}
	}
	for _, name := range calls.list("exclude") {
		c.webhookNode(name)
	}
}

func (c *checker) calls(n *node, where *place) {
	for i, call := range n.items {
		c.webhookNode(call)
		c.webhookNode(call.get("webhook"))
		c.enum(call, "phase", []string{string(framework.Mutating), string(framework.Validating)})
		for _, name := range []string{"review", "request", "query", "header", "path", "proto", "serverName", "protocols", "clientCertificate", "connection"} {
			c.operators(call.get(name), where.item(i).field(name))
		}
	}
}

// operators checks the operators within an expected value.
func (c *checker) operators(n *node, where *place) {
	if n == nil || !n.hasOperator() {
		return
	}
	err := match.ValidateOperators(n.plainValue())
	if err == nil {
		return
	}
	var wrong *match.OperatorError
	if !errors.As(err, &wrong) {
		c.fail(n, fmt.Sprintf("%s cannot be matched: %v", where, err), "")
		return
	}
	holder := n.find(wrong.Path)
	for i := range holder.fields {
		if entry := &holder.fields[i]; entry.name == wrong.Operator {
			holder = &node{line: entry.line, column: entry.column}
			break
		}
	}
	if wrong.Hint != "" {
		c.fail(holder, fmt.Sprintf("unknown operator %s in %s; expected one that expectations have", wrong.Operator, where),
			fmt.Sprintf("did you mean %q?", wrong.Hint))
		return
	}
	c.fail(holder, fmt.Sprintf("operator %s in %s: %s", wrong.Operator, where, wrong.Problem), "")
}

// hasOperator reports whether a field's name within a value begins with "$".
func (n *node) hasOperator() bool {
	for i := range n.fields {
		if strings.HasPrefix(n.fields[i].name, "$") || n.fields[i].value.hasOperator() {
			return true
		}
	}
	return slices.ContainsFunc(n.items, (*node).hasOperator)
}
