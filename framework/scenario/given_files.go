package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// outsideHint is the hint for a path that leads out of the tree of the scenario.
const outsideHint = "the path is relative to this file; the tree is the Git repository or Go module of the scenario, else the folder above the one that was given"

// givenFiles reads the manifests of spec.givenFiles into c.files.
func (c *checker) givenFiles(from *file, spec *strictyaml.Node) {
	list := spec.Get("givenFiles")
	if list == nil || list.Kind != strictyaml.KindList {
		return
	}
	where := specPlace().field("givenFiles")
	for i, item := range list.Items {
		if item.Kind == strictyaml.KindText {
			c.givenFile(from, item, where.item(i))
		}
	}
}

func (c *checker) givenFile(from *file, at *strictyaml.Node, where *place) {
	const hint = "the path is relative to this file"
	refuse := func(problem, hint string) {
		c.fail(at, fmt.Sprintf("%s %s: %s; expected a file of Kubernetes manifests", where, strictyaml.Quote(at.Raw), problem), hint)
	}
	if at.Raw == "" || path.IsAbs(at.Raw) || strings.Contains(at.Raw, `\`) {
		refuse("not a relative path with slashes", `write it as "../config/webhook.yaml"`)
		return
	}
	other, err := from.relative(at.Raw)
	var content []byte
	if err == nil {
		content, err = other.content()
	}
	var placed *fs.PathError
	switch {
	case errors.Is(err, errOutside):
		refuse(err.Error(), outsideHint)
		return
	case errors.As(err, &placed):
		refuse("cannot be read: "+placed.Err.Error(), hint)
		return
	case err != nil:
		refuse(err.Error(), hint)
		return
	}
	documents, problems := parseDocuments(other.name, content, strictyaml.ParsePrivate)
	if len(problems) > maxErrors {
		problems = atMost(maxErrors, problems)
	}
	c.errors = append(c.errors, problems...)
	if len(documents) == 0 && len(problems) == 0 {
		refuse("has no manifest", "")
	}
	inner := checker{decoder: decoder{file: other.name}, private: true}
	for i, document := range documents {
		if document.Kind != strictyaml.KindMapping {
			inner.fail(document, fmt.Sprintf("the document is %s; expected a Kubernetes manifest", document.Kind), "begin with apiVersion: and kind:")
			continue
		}
		if document.Text("apiVersion") == APIVersion {
			inner.fail(document, "the document is a "+document.Text("kind")+" of admissiontest; expected a Kubernetes manifest", "")
			continue
		}
		inner.manifest(document, (&place{name: other.name}).item(i))
		c.files = append(c.files, document)
	}
	c.errors = append(c.errors, inner.errors...)
}

// fromFiles returns the manifests of spec.givenFiles as Go values.
func (c *checker) fromFiles() []map[string]any {
	var out []map[string]any
	for _, document := range c.files {
		out = append(out, document.Mapping())
	}
	return out
}
