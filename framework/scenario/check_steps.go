package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// requestFields are the fields of a step that describe its request.
func requestFields() []string {
	return []string{"subresource", "parent", "name", "namespace", "as", "dryRun", "options", "body", "contentType", "eventually"}
}

func (c *checker) step(step *Step, set *document.Decoded) {
	c.stepID(step, set)
	c.control(step, set)
	for _, action := range otherActions() {
		if set.Node.Has(action) {
			c.noRequest(set, action)
			break
		}
	}
	for _, verb := range []string{"create", "update", "apply"} {
		c.manifest(set.Node.Get(verb), set.At(verb))
	}
	for i, manifest := range set.Node.List("install") {
		c.manifest(manifest, set.At("install").Item(i))
	}
	for _, verb := range []string{"get", "patch", "delete", "connect", "wait"} {
		if !set.Node.Has("name") {
			c.hasName(set.Node.Get(verb), set.At(verb))
		}
	}
	for i, reference := range set.Node.List("remove") {
		c.hasName(reference, set.At("remove").Item(i))
	}
	c.scripts(set.Get("script"))
	for i, inner := range set.Node.List("parallel") {
		c.noCallFields(inner.Get("then"), set.At("parallel").Item(i).Field("then"))
	}
}

func (c *checker) stepID(step *Step, set *document.Decoded) {
	id := set.Get("id")
	if id == nil || !id.Valid() {
		return
	}
	if line, twice := c.ids[step.ID]; twice {
		c.Fail(id, fmt.Sprintf("another step has the ID %s; expected a unique ID", document.Quote(step.ID)), fmt.Sprintf("the other is in line %d: rename one", line))
		return
	}
	c.ids[step.ID] = id.Line
}

// control checks where a control stands. Without another step, a scenario could not fail.
func (c *checker) control(step *Step, set *document.Decoded) {
	if !step.Control {
		return
	}
	node, where := set.Get("control"), set.Path.String()
	switch {
	case !strings.HasPrefix(where, "spec.when[") || strings.Count(where, "[") > 1:
		c.Fail(node, fmt.Sprintf("%s is a control; expected control only for a step of when", where), "set it for the outer step")
	case !slices.ContainsFunc(c.scenario.Spec.When, func(other Step) bool { return !other.Control }):
		c.Fail(node, fmt.Sprintf("%s is a control, like every other step; expected a step that tests the requirement", where), "remove control from that step")
	}
}

// noRequest refuses fields that have no effect in a step that sends no request. An
// expectation that is never checked would pass.
func (c *checker) noRequest(set *document.Decoded, action string) {
	refused := requestFields()
	if action != "parallel" {
		refused = append(refused, "then")
	} else if plugins := set.Node.Get("then").Get("plugins"); plugins != nil {
		c.Fail(plugins, fmt.Sprintf("%s has plugins; expected plugins only for one request, because the calls of plugins are recorded for each request", set.At("then")),
			"move it to the then of a step in parallel")
	} else if by := set.Node.Get("then").Get("refusedBy"); by != nil {
		c.Fail(by, fmt.Sprintf("%s has refusedBy; expected refusedBy only for one request", set.At("then")), "move it to the then of a step in parallel")
	}
	for _, field := range set.Node.Fields {
		if slices.Contains(refused, field.Name) {
			c.Fail(field.Key, fmt.Sprintf("%s has %s and %s; expected %s only with a request: %s", set.Path, action, field.Name, field.Name, strings.Join(requestActions(), ", ")),
				"move it to the step that sends the request")
		}
	}
}

// noCallFields refuses expectations about the calls for one of several parallel
// requests, because a call does not show which request it is for.
func (c *checker) noCallFields(then *document.Node, where *document.Path) {
	if then == nil {
		return
	}
	for _, field := range then.Fields {
		if slices.Contains([]string{"calls", "distinct", "serial", "overlapping", "answeredLast"}, field.Name) {
			c.Fail(field.Key, fmt.Sprintf("%s has %s; expected %s only for all parallel requests together", where, field.Name, field.Name),
				"move it to the then of the parallel step")
		}
	}
}

// hasName checks that a reference to one object has a name.
func (c *checker) hasName(reference *document.Node, where *document.Path) {
	if reference == nil || reference.Kind != document.KindMapping || reference.Has("name") {
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

// filesStep checks a step that changes files of the API server.
func (c *checker) filesStep(set *document.Decoded) {
	if !c.root.Get("spec").Has("server") {
		c.Fail(set.Node, fmt.Sprintf("%s needs an API server with files; expected spec.server", set.Path), "write the files in spec.server.files")
	}
	c.fileNames(set.Get("write"), set.At("write"))
	if write := set.Get("write"); write != nil {
		for _, field := range write.Fields {
			if strings.Contains(field.Name, "$(") {
				c.Fail(field.Key, fmt.Sprintf("%s has the path %s; expected one without placeholders", set.At("write"), document.Quote(field.Name)), "")
			}
		}
	}
	for i, name := range set.Get("remove").Texts() {
		c.fileName(name, name.Raw, set.At("remove").Item(i))
	}
}

// fileNames checks a map whose keys are paths of files of an API server.
func (d *decoder) fileNames(n *document.Node, where *document.Path) {
	if n == nil {
		return
	}
	for _, field := range n.Fields {
		d.fileName(field.Value, field.Name, where)
	}
}

func (d *decoder) fileName(n *document.Node, name string, where *document.Path) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		d.Fail(n, fmt.Sprintf("%s has the path %s; expected a relative path below the folder of the files", where, document.Quote(name)), "")
	}
}

// wait checks a step that waits for an object.
func (c *checker) wait(wait *Wait, set *document.Decoded) {
	if object := set.Node.Get("object"); object != nil && wait.Gone {
		c.Fail(object, fmt.Sprintf("%s has gone and object; expected one of them", set.Path), "remove one of them")
	}
}

// metrics checks a metric of webhooks: its label has the name of one.
func (c *checker) metrics(metrics *Metrics, set *document.Decoded) {
	if strings.HasPrefix(metrics.Name, "apiserver_admission_webhook_") {
		c.called(set.Node.Get("labels").Get("name"))
	}
}
