package check

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// requestFields are the fields of a step that describe its request.
func requestFields() []string {
	return []string{"subresource", "parent", "name", "namespace", "as", "dryRun", "options", "body", "contentType", "eventually"}
}

// steps checks a list of steps.
func (c *checker) steps(n *strictyaml.Node, where *decode.Place) {
	for i, step := range n.Items {
		if step.Kind == strictyaml.KindMapping {
			c.step(step, where.Item(i))
		}
	}
}

func (c *checker) step(n *strictyaml.Node, where *decode.Place) {
	action, ok := c.action(n, where)
	c.stepID(n.Get("id"), where)
	if ok && slices.Contains(grammar.OtherActions(), action) {
		c.noRequest(n, action, where)
	}
	for _, verb := range []string{"create", "update", "apply"} {
		c.Manifest(n.Get(verb), where.Field(verb))
	}
	for i, manifest := range n.List("install") {
		c.Manifest(manifest, where.Field("install").Item(i))
	}
	for _, verb := range []string{"get", "patch", "delete", "connect", "wait"} {
		c.hasName(n, n.Get(verb), where.Field(verb))
	}
	for i, reference := range n.List("remove") {
		c.hasName(nil, reference, where.Field("remove").Item(i))
	}
	c.patch(n.Get("patch"), where.Field("patch"))
	c.filesStep(n.Get("files"), where.Field("files"))
	c.wait(n.Get("wait"), where.Field("wait"))
	c.samples(n.Get("metrics"), where.Field("metrics"))
	if script := n.Get("script"); script != nil {
		c.hooks(script, where.Field("script"))
	}
	if parallel := n.Get("parallel"); parallel != nil {
		c.steps(parallel, where.Field("parallel"))
		for i, inner := range parallel.Items {
			c.noCallFields(inner.Get("then"), where.Field("parallel").Item(i).Field("then"))
		}
	}
	c.expectation(n.Get("then"), where.Field("then"))
}

// filesStep checks a step that changes files of the API server.
func (c *checker) filesStep(n *strictyaml.Node, where *decode.Place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	if !c.ownServer {
		c.Fail(n, fmt.Sprintf("%s needs an API server with files; expected spec.server", where), "write the files in spec.server.files")
	}
	write := n.Get("write")
	if len(n.List("remove")) == 0 && (write == nil || len(write.Fields) == 0) {
		c.Fail(n, fmt.Sprintf("%s changes nothing; expected write or remove", where), "")
	}
	c.fileNames(write, where.Field("write"))
	if write != nil {
		for _, field := range write.Fields {
			if strings.Contains(field.Name, "$(") {
				c.Fail(&strictyaml.Node{Line: field.Line, Column: field.Column}, fmt.Sprintf("%s has the path %s; expected one without placeholders", where.Field("write"), strictyaml.Quote(field.Name)), "")
			}
			c.written = append(c.written, &serverFile{name: field.Name, node: field.Value, inStep: true})
		}
	}
	for i, name := range n.List("remove") {
		c.fileName(name, name.Raw, where.Field("remove").Item(i))
	}
}

// fileNames checks a mapping whose keys are paths of files of an API server.
func (c *checker) fileNames(n *strictyaml.Node, where *decode.Place) {
	if n == nil {
		return
	}
	for _, field := range n.Fields {
		c.fileName(field.Value, field.Name, where)
	}
}

func (c *checker) fileName(n *strictyaml.Node, name string, where *decode.Place) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		c.Fail(n, fmt.Sprintf("%s has the path %s; expected a relative path below the folder of the files", where, strictyaml.Quote(name)), "")
	}
}

// action returns the one action of a step.
func (c *checker) action(n *strictyaml.Node, where *decode.Place) (string, bool) {
	all := append(grammar.RequestActions(), grammar.OtherActions()...)
	var found []string
	for i := range n.Fields {
		name := n.Fields[i].Name
		if slices.Contains(all, name) {
			found = append(found, name)
		} else if !grammar.HasField[scenario.Step](c.Structs, name) {
			return "", false // perhaps a misspelt action, which the decoder has reported
		}
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		c.Fail(n, fmt.Sprintf("%s has no action; expected one of %s", where, strings.Join(all, ", ")), "")
	default:
		c.Fail(n, fmt.Sprintf("%s has the actions %s; expected one", where, quote(found)), "write one step for each")
	}
	return "", false
}

func (c *checker) stepID(id *strictyaml.Node, where *decode.Place) {
	if id == nil || id.Kind != strictyaml.KindText {
		return
	}
	if id.Raw == "" || strings.ContainsAny(id.Raw, ".()$ ") {
		c.Fail(id, fmt.Sprintf("%s.id is %s; expected a name without dots, spaces, $ and parentheses", where, strictyaml.Quote(id.Raw)), "")
		return
	}
	if line, twice := c.ids[id.Raw]; twice {
		c.Fail(id, fmt.Sprintf("another step has the ID %s; expected a unique ID", strictyaml.Quote(id.Raw)), fmt.Sprintf("the other is in line %d: rename one", line))
		return
	}
	c.ids[id.Raw] = id.Line
}

// noRequest refuses fields that have no effect in a step that sends no request. An
// expectation that is never checked would pass.
func (c *checker) noRequest(n *strictyaml.Node, action string, where *decode.Place) {
	refused := requestFields()
	if action != "parallel" {
		refused = append(refused, "then")
	} else if then := n.Get("then"); then.Has("plugins") {
		c.Fail(then.Get("plugins"), fmt.Sprintf("%s has plugins; expected plugins only for one request, because the calls of plugins are recorded for each request", where.Field("then")),
			"move it to the then of a step in parallel")
	} else if then.Has("refusedBy") {
		c.Fail(then.Get("refusedBy"), fmt.Sprintf("%s has refusedBy; expected refusedBy only for one request", where.Field("then")),
			"move it to the then of a step in parallel")
	}
	for i := range n.Fields {
		if entry := &n.Fields[i]; slices.Contains(refused, entry.Name) {
			c.FailField(entry, fmt.Sprintf("%s has %s and %s; expected %s only with a request: %s", where, action, entry.Name, entry.Name, strings.Join(grammar.RequestActions(), ", ")),
				"move it to the step that sends the request")
		}
	}
}

// noCallFields refuses expectations about the calls for one of several parallel
// requests, because a call does not show which request it is for.
func (c *checker) noCallFields(then *strictyaml.Node, where *decode.Place) {
	if then == nil {
		return
	}
	for i := range then.Fields {
		entry := &then.Fields[i]
		if slices.Contains([]string{"calls", "distinct", "serial", "overlapping", "answeredLast"}, entry.Name) {
			c.FailField(entry, fmt.Sprintf("%s has %s; expected %s only for all parallel requests together", where, entry.Name, entry.Name),
				"move it to the then of the parallel step")
		}
	}
}

// hasName checks that a reference to one object has a name, or its step has one.
func (c *checker) hasName(step, reference *strictyaml.Node, where *decode.Place) {
	if reference == nil || reference.Kind != strictyaml.KindMapping || reference.Has("name") || step.Has("name") {
		return
	}
	hint := `add "name:"`
	switch where.Name() {
	case "delete":
		hint += ", or use deleteCollection"
	case "get":
		hint += ", or use list"
	}
	c.Fail(reference, fmt.Sprintf("%s has no name; expected the name of one object", where), hint)
}

func (c *checker) patch(n *strictyaml.Node, where *decode.Place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	count := 0
	for _, name := range grammar.PatchKinds() {
		if n.Has(name) {
			count++
		}
	}
	if count != 1 {
		c.Fail(n, fmt.Sprintf("%s has %d patches; expected one of %s", where, count, strings.Join(grammar.PatchKinds(), ", ")), "")
	}
}

// expectation checks the expectations of a step.
func (c *checker) expectation(n *strictyaml.Node, where *decode.Place) {
	if n == nil {
		return
	}
	c.contradiction(n, where)
	c.refusedBy(n, where)
	c.saysSomething(n, where)
	for _, name := range []string{"details", "object", "warnings", "audit"} {
		c.Expected(n.Get(name), where.Field(name))
	}
	c.Fields(n.Get("details"), where.Field("details"), reflect.TypeFor[metav1.StatusDetails](), "status.details")
	c.Fields(n.Get("audit"), where.Field("audit"), reflect.TypeFor[auditEvent](), "an audit event")
	c.anyValue(n.Get("warnings"), where.Field("warnings"))
	if warnings := n.Get("warnings"); warnings != nil && warnings.Kind != strictyaml.KindList && warnings.Kind != strictyaml.KindMapping {
		c.WrongKind(warnings, where.Field("warnings"), strictyaml.KindList)
	}
	for _, name := range n.List("overlapping") {
		c.calledWebhook(name)
	}
	c.plugins(n.Get("plugins"), where.Field("plugins"))
	calls := n.Get("calls")
	if calls == nil {
		return
	}
	if calls.Kind == strictyaml.KindList {
		c.calls(calls, where.Field("calls"))
		return
	}
	for _, name := range []string{"inOrder", "anyOrder", "include"} {
		if list := calls.Get(name); list != nil {
			c.calls(list, where.Field("calls").Field(name))
		}
	}
	for _, name := range calls.List("exclude") {
		c.calledWebhook(name)
	}
}

// plugins checks the expected calls of plugins.
func (c *checker) plugins(n *strictyaml.Node, where *decode.Place) {
	if n == nil {
		return
	}
	list := n
	if n.Kind == strictyaml.KindMapping {
		list, where = n.Get("inOrder"), where.Field("inOrder")
	}
	if list == nil {
		return
	}
	for i, call := range list.Items {
		c.Enum(call, "phase", []string{string(framework.Mutating), string(framework.Validating)})
		refused := call.Get("refused")
		if refused == nil {
			continue
		}
		if refused.Kind != strictyaml.KindBool && refused.Kind != strictyaml.KindMapping {
			c.WrongKind(refused, where.Item(i).Field("refused"), strictyaml.KindBool)
		}
		c.Expected(refused, where.Item(i).Field("refused"))
		c.Fields(refused, where.Item(i).Field("refused"), reflect.TypeFor[refusal](), "a refusal by a plugin")
	}
}

// quote returns names for a message: "a", "b" and "c".
func quote(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	if last := len(quoted) - 1; last > 0 {
		return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
	}
	return strings.Join(quoted, "")
}
