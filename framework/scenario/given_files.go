package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
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
	c.files = append(c.files, c.manifestsOf(from, at, where)...)
}

// stepFiles replaces the manifests of steps that only name a file, create: {file: pod.yaml}, by
// the manifest in that file.
func (c *checker) stepFiles(from *file, steps *strictyaml.Node, where *place) {
	if steps == nil {
		return
	}
	for i, step := range steps.Items {
		c.stepFiles(from, step.Get("parallel"), where.item(i).field("parallel"))
		for k := range step.Fields {
			entry := &step.Fields[k]
			if !slices.Contains([]string{"create", "update", "apply"}, entry.Name) || len(entry.Value.Fields) != 1 {
				continue
			}
			name, at := entry.Value.Get("file"), where.item(i).field(entry.Name).field("file")
			if name == nil || name.Kind != strictyaml.KindText {
				continue
			}
			manifests := c.manifestsOf(from, name, at)
			switch len(manifests) {
			case 0: // manifestsOf has reported it
				entry.Value = &strictyaml.Node{Kind: strictyaml.KindRefused, Line: name.Line, Column: name.Column}
			case 1:
				entry.Value = manifests[0].node
				c.inSteps[entry.Value] = manifests[0].file
			default:
				c.fail(name, fmt.Sprintf("%s %s has %d manifests; expected one", at, strictyaml.Quote(name.Raw), len(manifests)), "make a step and a file of each")
				entry.Value = manifests[0].node
			}
		}
	}
}

// manifestsOf reads the manifests of a file that a scenario names.
func (c *checker) manifestsOf(from *file, at *strictyaml.Node, where *place) []fileNode {
	const hint = "the path is relative to this file"
	refuse := func(problem, hint string) {
		c.fail(at, fmt.Sprintf("%s %s: %s; expected a file of Kubernetes manifests", where, strictyaml.Quote(at.Raw), problem), hint)
	}
	if at.Raw == "" || path.IsAbs(at.Raw) || strings.Contains(at.Raw, `\`) {
		refuse("not a relative path with slashes", `write it as "../config/webhook.yaml"`)
		return nil
	}
	other, err := from.relative(at.Raw)
	var content []byte
	if err == nil {
		other.limit, other.opened = maxManifestBytes, from.opened
		content, err = other.content()
	}
	var placed *fs.PathError
	switch {
	case errors.Is(err, errOutside):
		refuse(err.Error(), outsideHint)
		return nil
	case errors.As(err, &placed):
		refuse("cannot be read: "+placed.Err.Error(), hint)
		return nil
	case err != nil:
		refuse(err.Error(), hint)
		return nil
	}
	documents, problems := parseDocuments(other.name, content, strictyaml.ParsePrivate)
	if len(problems) > maxErrors {
		problems = atMost(maxErrors, problems)
	}
	c.errors = append(c.errors, problems...)
	if len(documents) == 0 && len(problems) == 0 {
		refuse("has no manifest", "")
	}
	return c.privateManifests(other.name, documents)
}

// privateManifests checks the documents of another file. No error shows a value of it.
func (c *checker) privateManifests(name string, documents []*strictyaml.Node) []fileNode {
	var manifests []fileNode
	inner := checker{decoder: decoder{file: name}, private: true}
	for i, document := range documents {
		if document.Kind != strictyaml.KindMapping {
			inner.fail(document, fmt.Sprintf("the document is %s; expected a Kubernetes manifest", document.Kind), "begin with apiVersion: and kind:")
			continue
		}
		if document.Text("apiVersion") == APIVersion {
			inner.fail(document, "the document is a "+document.Text("kind")+" of admissiontest; expected a Kubernetes manifest", "")
			continue
		}
		inner.manifest(document, (&place{name: name}).item(i))
		manifests = append(manifests, fileNode{name, document})
	}
	c.errors = append(c.errors, inner.errors...)
	return manifests
}

// fromFiles returns the manifests of spec.givenFiles as Go values.
func (c *checker) fromFiles() []map[string]any {
	var out []map[string]any
	for _, document := range c.files {
		out = append(out, document.node.Mapping())
	}
	return out
}
