package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// serviceOf returns NAMESPACE/NAME of the Service of a webhook under test: one
// whose clientConfig names a Service outside of the scenario's own namespaces. It
// returns "" for any other webhook.
func serviceOf(webhook *node) string {
	service := webhook.get("clientConfig").get("service")
	return serviceName(service.text("namespace"), service.text("name"))
}

// serviceName returns NAMESPACE/NAME, or "" where it is none of a webhook under
// test: a namespace with a placeholder is the scenario's own.
func serviceName(namespace, name string) string {
	if namespace == "" || name == "" || strings.Contains(namespace, "$(") {
		return ""
	}
	return namespace + "/" + name
}

// Services returns NAMESPACE/NAME, sorted, of the Services of the webhooks under
// test: those whose configuration, given, installed or written by a step, has a
// clientConfig.service outside of the scenario's own namespaces.
func Services(scenarios []Scenario) []string {
	found := map[string]bool{}
	for _, one := range scenarios {
		for _, manifest := range one.Spec.Given {
			gatherServices(manifest, found)
		}
		stepServices(one.Spec.When, found)
	}
	return slices.Sorted(maps.Keys(found))
}

func stepServices(steps []Step, found map[string]bool) {
	for _, step := range steps {
		for _, manifest := range append([]map[string]any{step.Create, step.Update, step.Apply}, step.Install...) {
			gatherServices(manifest, found)
		}
		stepServices(step.Parallel, found)
	}
}

func gatherServices(manifest map[string]any, found map[string]bool) {
	webhooks, _ := manifest["webhooks"].([]any)
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		namespace, _ := service["namespace"].(string)
		name, _ := service["name"].(string)
		if full := serviceName(namespace, name); full != "" {
			found[full] = true
		}
	}
}

// notOurs reports whether a webhook is one under test and in no configuration
// leads to a Hook.
func (c *checker) notOurs(name string) bool { return c.elsewhere[name] != "" && !c.ours[name] }

// noCalls refuses to expect no call at all where only webhooks under test could
// be called: that would hold whatever they do.
func (c *checker) noCalls(n *node, where *place) {
	if n.kind != kindList || len(n.items) > 0 || len(c.elsewhere) == 0 || slices.ContainsFunc(c.webhooks, func(name string) bool { return !c.notOurs(name) }) {
		return
	}
	c.fail(n, fmt.Sprintf("%s expects no call, but the scenario has webhooks under test only, whose calls are not seen; expected a webhook without clientConfig beside them", where),
		"expect what they do to the answer: object, message, warnings")
}

// givenFiles reads the manifests of spec.givenFiles.
func (c *checker) givenFiles(from *file, spec *node) {
	list := spec.get("givenFiles")
	if list == nil || list.kind != kindList {
		return
	}
	where := specPlace().field("givenFiles")
	for i, item := range list.items {
		if item.kind == kindText {
			c.givenFile(from, item, where.item(i))
		}
	}
}

func (c *checker) givenFile(from *file, at *node, where *place) {
	const hint = "the path is relative to this file"
	refuse := func(problem, hint string) {
		c.fail(at, fmt.Sprintf("%s %s: %s; expected a file of Kubernetes manifests", where, shown(at.raw), problem), hint)
	}
	if at.raw == "" || path.IsAbs(at.raw) || strings.Contains(at.raw, `\`) {
		refuse("no relative path with slashes", `write it as "../config/webhook.yaml"`)
		return
	}
	other, err := from.beside(at.raw)
	var content []byte
	if err == nil {
		content, err = other.content()
	}
	var placed *fs.PathError
	switch {
	case errors.As(err, &placed):
		refuse("cannot be read: "+placed.Err.Error(), hint)
		return
	case err != nil:
		refuse(err.Error(), hint)
		return
	}
	documents, problems := parseManifests(other.name, content)
	if len(problems) > maxErrors {
		problems = atMost(maxErrors, problems)
	}
	c.errors = append(c.errors, problems...)
	if len(documents) == 0 && len(problems) == 0 {
		refuse("has no manifest", "")
	}
	inner := checker{decoder: decoder{file: other.name}}
	for i, document := range documents {
		if document.kind != kindMapping {
			inner.fail(document, fmt.Sprintf("the document is %s; expected a Kubernetes manifest", document.describe()), "begin with apiVersion: and kind:")
			continue
		}
		if document.text("apiVersion") == APIVersion {
			inner.fail(document, "the document is a "+document.text("kind")+" of ours; expected a Kubernetes manifest", "")
			continue
		}
		inner.manifest(document, (&place{name: other.name}).item(i))
		c.files = append(c.files, document)
	}
	c.errors = append(c.errors, inner.errors...)
}

// fromFiles are the manifests of spec.givenFiles as Go values.
func (c *checker) fromFiles() []map[string]any {
	var out []map[string]any
	for _, document := range c.files {
		out = append(out, document.mapping())
	}
	return out
}

// parseManifests returns the documents of a file of manifests, those that are
// empty left out.
func parseManifests(name string, content []byte) ([]*node, []*Error) {
	b := &builder{file: name}
	text, ok := b.source(content)
	if !ok {
		return nil, b.errors
	}
	return b.documents(text), b.errors
}
