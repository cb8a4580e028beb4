package scenario

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
	"github.com/admissiontest/admissiontest/internal/match"
)

// requestActions are the actions of a step that send one request.
func requestActions() []string {
	return []string{"create", "update", "apply", "get", "list", "patch", "delete", "deleteCollection", "connect"}
}

func otherActions() []string {
	return []string{"parallel", "install", "remove", "script", "wait", "metrics", "files"}
}

// requestFields are the fields of a step that describe its request.
func requestFields() []string {
	return []string{"subresource", "parent", "name", "namespace", "as", "dryRun", "options", "body", "contentType", "eventually"}
}

// patchKinds are the fields of a Patch of which it has exactly one.
func patchKinds() []string { return []string{"json", "merge", "strategic"} }

// steps checks a list of steps.
func (c *checker) steps(n *strictyaml.Node, where *place) {
	for i, step := range n.Items {
		if step.Kind == strictyaml.KindMapping {
			c.step(step, where.item(i))
		}
	}
}

func (c *checker) step(n *strictyaml.Node, where *place) {
	action, ok := c.action(n, where)
	c.stepID(n.Get("id"), where)
	if ok && slices.Contains(otherActions(), action) {
		c.noRequest(n, action, where)
	}
	for _, verb := range []string{"create", "update", "apply"} {
		c.manifest(n.Get(verb), where.field(verb))
	}
	for i, manifest := range n.List("install") {
		c.manifest(manifest, where.field("install").item(i))
	}
	for _, verb := range []string{"get", "patch", "delete", "connect", "wait"} {
		c.hasName(n, n.Get(verb), where.field(verb))
	}
	for i, reference := range n.List("remove") {
		c.hasName(nil, reference, where.field("remove").item(i))
	}
	c.patch(n.Get("patch"), where.field("patch"))
	c.filesStep(n.Get("files"), where.field("files"))
	c.operators(n.Get("wait").Get("object"), where.field("wait").field("object"))
	c.operators(n.Get("metrics").Get("samples"), where.field("metrics").field("samples"))
	if script := n.Get("script"); script != nil {
		c.hooks(script, where.field("script"))
	}
	if parallel := n.Get("parallel"); parallel != nil {
		c.steps(parallel, where.field("parallel"))
		for i, inner := range parallel.Items {
			c.noCallFields(inner.Get("then"), where.field("parallel").item(i).field("then"))
		}
	}
	c.expectation(n.Get("then"), where.field("then"))
}

// filesStep checks a step that changes files of the API server.
func (c *checker) filesStep(n *strictyaml.Node, where *place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	if !c.ownServer {
		c.fail(n, fmt.Sprintf("%s needs an API server with files; expected spec.server", where), "start it with these files: spec.server.files")
	}
	write := n.Get("write")
	if len(n.List("remove")) == 0 && (write == nil || len(write.Fields) == 0) {
		c.fail(n, fmt.Sprintf("%s changes nothing; expected write or remove", where), "")
	}
	c.fileNames(write, where.field("write"))
	for i, name := range n.List("remove") {
		c.fileName(name, name.Raw, where.field("remove").item(i))
	}
}

// fileNames checks a mapping whose keys are paths of files of an API server.
func (c *checker) fileNames(n *strictyaml.Node, where *place) {
	if n == nil {
		return
	}
	for _, field := range n.Fields {
		c.fileName(field.Value, field.Name, where)
	}
}

func (c *checker) fileName(n *strictyaml.Node, name string, where *place) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		c.fail(n, fmt.Sprintf("%s has the path %s; expected a relative path below the folder of the files", where, strictyaml.Quote(name)), "")
	}
}

// action returns the one action of a step.
func (c *checker) action(n *strictyaml.Node, where *place) (string, bool) {
	all := append(requestActions(), otherActions()...)
	var found []string
	for i := range n.Fields {
		name := n.Fields[i].Name
		if slices.Contains(all, name) {
			found = append(found, name)
		} else if !hasField[Step](c.structs, name) {
			return "", false // perhaps a misspelt action, which the decoder has reported
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

func (c *checker) stepID(id *strictyaml.Node, where *place) {
	if id == nil || id.Kind != strictyaml.KindText {
		return
	}
	if id.Raw == "" || strings.ContainsAny(id.Raw, ".()$ ") {
		c.fail(id, fmt.Sprintf("%s.id is %s; expected a name without dots, spaces, $ and parentheses", where, strictyaml.Quote(id.Raw)), "")
		return
	}
	if line, twice := c.ids[id.Raw]; twice {
		c.fail(id, fmt.Sprintf("another step has the ID %s; expected a unique ID", strictyaml.Quote(id.Raw)), fmt.Sprintf("the other is in line %d: rename one", line))
		return
	}
	c.ids[id.Raw] = id.Line
}

// noRequest refuses fields that have no effect in a step that sends no request. An
// expectation that is never checked would pass.
func (c *checker) noRequest(n *strictyaml.Node, action string, where *place) {
	refused := requestFields()
	if action != "parallel" {
		refused = append(refused, "then")
	} else if then := n.Get("then"); then.Has("plugins") {
		c.fail(then.Get("plugins"), fmt.Sprintf("%s has plugins; expected it for one request: records of plugins belong to a request", where.field("then")),
			"move it to the then of a step of parallel")
	} else if then.Has("refusedBy") {
		c.fail(then.Get("refusedBy"), fmt.Sprintf("%s has refusedBy; expected it for one request", where.field("then")),
			"move it to the then of a step of parallel")
	}
	for i := range n.Fields {
		if entry := &n.Fields[i]; slices.Contains(refused, entry.Name) {
			c.failField(entry, fmt.Sprintf("%s has %s and %s; expected %s only with a request: %s", where, action, entry.Name, entry.Name, strings.Join(requestActions(), ", ")),
				"move it to the step that sends the request")
		}
	}
}

// noCallFields refuses expectations about the calls for one of several parallel
// requests, because a call does not show which request it is for.
func (c *checker) noCallFields(then *strictyaml.Node, where *place) {
	if then == nil {
		return
	}
	for i := range then.Fields {
		entry := &then.Fields[i]
		if slices.Contains([]string{"calls", "distinct", "serial", "overlapping", "answeredLast"}, entry.Name) {
			c.failField(entry, fmt.Sprintf("%s has %s; expected it for all parallel requests together", where, entry.Name),
				"move it to the then of the parallel step")
		}
	}
}

// hasName checks that a reference to one object has a name, or its step has one.
func (c *checker) hasName(step, reference *strictyaml.Node, where *place) {
	if reference == nil || reference.Kind != strictyaml.KindMapping || reference.Has("name") || step.Has("name") {
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

func (c *checker) patch(n *strictyaml.Node, where *place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	count := 0
	for _, name := range patchKinds() {
		if n.Has(name) {
			count++
		}
	}
	if count != 1 {
		c.fail(n, fmt.Sprintf("%s has %d patches; expected one of %s", where, count, strings.Join(patchKinds(), ", ")), "")
	}
}

// expectation checks the expectations of a step.
func (c *checker) expectation(n *strictyaml.Node, where *place) {
	if n == nil {
		return
	}
	c.contradiction(n, where)
	c.refusedBy(n, where)
	for _, name := range []string{"details", "object", "warnings", "audit"} {
		c.operators(n.Get(name), where.field(name))
	}
	if warnings := n.Get("warnings"); warnings != nil && warnings.Kind != strictyaml.KindList && warnings.Kind != strictyaml.KindMapping {
		c.wrongKind(warnings, where.field("warnings"), strictyaml.KindList)
	}
	for _, name := range n.List("overlapping") {
		c.calledWebhook(name)
	}
	c.plugins(n.Get("plugins"), where.field("plugins"))
	calls := n.Get("calls")
	if calls == nil {
		return
	}
	if calls.Kind == strictyaml.KindList {
		c.calls(calls, where.field("calls"))
		return
	}
	for _, name := range []string{"inOrder", "anyOrder", "include"} {
		if list := calls.Get(name); list != nil {
			c.calls(list, where.field("calls").field(name))
		}
	}
	for _, name := range calls.List("exclude") {
		c.calledWebhook(name)
	}
}

func (c *checker) calls(n *strictyaml.Node, where *place) {
	for i, call := range n.Items {
		c.calledWebhook(call)
		c.calledWebhook(call.Get("webhook"))
		c.enum(call, "phase", []string{string(framework.Mutating), string(framework.Validating)})
		for _, name := range []string{"review", "request", "query", "header", "path", "proto", "serverName", "protocols", "clientCertificate", "connection", "response", "code", "latencyMillis", "requestBytes", "responseBytes"} {
			c.operators(call.Get(name), where.item(i).field(name))
		}
	}
}

// plugins checks the expected calls of plugins.
func (c *checker) plugins(n *strictyaml.Node, where *place) {
	if n == nil {
		return
	}
	list := n
	if n.Kind == strictyaml.KindMapping {
		list, where = n.Get("inOrder"), where.field("inOrder")
	}
	if list == nil {
		return
	}
	for i, call := range list.Items {
		c.enum(call, "phase", []string{string(framework.Mutating), string(framework.Validating)})
		refused := call.Get("refused")
		if refused == nil {
			continue
		}
		if refused.Kind != strictyaml.KindBool && refused.Kind != strictyaml.KindMapping {
			c.wrongKind(refused, where.item(i).field("refused"), strictyaml.KindBool)
		}
		c.operators(refused, where.item(i).field("refused"))
	}
}

// operators checks the operators in an expected value.
func (c *checker) operators(n *strictyaml.Node, where *place) {
	if n == nil || !hasOperator(n) {
		return
	}
	err := match.ValidateOperators(n.Plain())
	if err == nil {
		return
	}
	var wrong *match.OperatorError
	if !errors.As(err, &wrong) {
		c.fail(n, fmt.Sprintf("%s cannot be matched: %v", where, err), "")
		return
	}
	holder := n.Find(wrong.Path)
	for i := range holder.Fields {
		if entry := &holder.Fields[i]; entry.Name == wrong.Operator {
			holder = &strictyaml.Node{Line: entry.Line, Column: entry.Column}
			break
		}
	}
	if wrong.Hint != "" {
		c.fail(holder, fmt.Sprintf("unknown operator %s in %s; expected an operator of expectations", wrong.Operator, where),
			fmt.Sprintf("did you mean %q?", wrong.Hint))
		return
	}
	c.fail(holder, fmt.Sprintf("operator %s in %s: %s", wrong.Operator, where, wrong.Problem), "")
}

// hasOperator reports whether the name of a field in a value is meant as an operator.
func hasOperator(n *strictyaml.Node) bool {
	for i := range n.Fields {
		if match.LooksLikeOperator(n.Fields[i].Name) || hasOperator(n.Fields[i].Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, hasOperator)
}
