package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

func (c *checker) step(step *Step, set *document.Decoded) {
	c.stepID(step, set)
	c.control(step, set)
	for _, verb := range []string{"create", "update", "apply"} {
		c.manifest(set.Node.Get(verb), set.At(verb))
	}
	for i, manifest := range set.Node.List("install") {
		c.manifest(manifest, set.At("install").Item(i))
	}
	c.scripts(set.Get("script"))
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

// filesStep checks a step that changes files of the API server.
func (c *checker) filesStep(set *document.Decoded) {
	if !c.root.Get("spec").Has("server") {
		c.Fail(set.Node, fmt.Sprintf("%s needs an API server with files; expected spec.server", set.Path), "write the files in spec.server.files")
	}
}

// metrics checks a metric of webhooks: its label has the name of one.
func (c *checker) metrics(metrics *Metrics, set *document.Decoded) {
	if strings.HasPrefix(metrics.Name, "apiserver_admission_webhook_") {
		c.called(set.Node.Get("labels").Get("name"))
	}
}
