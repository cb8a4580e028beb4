package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// Manifest is a manifest with its file.
type Manifest struct {
	File string
	Node *strictyaml.Node
}

// outsideHint is the hint for a path that leads out of the tree of the scenario.
const outsideHint = "the path is relative to this file; the file must be in the Git repository or Go module of the scenario or, without one, in the parent of the folder that you gave"

// Given returns the manifests of spec.givenFiles. From is the file of the scenario.
func Given(d *decode.Decoder, from *files.File, spec *strictyaml.Node) []Manifest {
	list := spec.Get("givenFiles")
	if list == nil || list.Kind != strictyaml.KindList {
		return nil
	}
	var out []Manifest
	where := decode.Root("spec").Field("givenFiles")
	for i, item := range list.Items {
		if item.Kind == strictyaml.KindText {
			out = append(out, Read(d, from, item, where.Item(i))...)
		}
	}
	return out
}

// InSteps replaces the manifests of steps that only name a file, create: {file: pod.yaml}, by
// the manifest in that file, and those in install by all manifests in it. It returns the files of these manifests. From is the file of the scenario.
func InSteps(d *decode.Decoder, from *files.File, spec *strictyaml.Node) map[*strictyaml.Node]string {
	replaced := map[*strictyaml.Node]string{}
	replacer{d, from, replaced}.steps(spec.Get("when"), decode.Root("spec").Field("when"))
	return replaced
}

// replacer replaces the manifests of steps.
type replacer struct {
	*decode.Decoder
	from *files.File
	// replaced are the files of the manifests.
	replaced map[*strictyaml.Node]string
}

func (r replacer) steps(steps *strictyaml.Node, where *decode.Place) {
	if steps == nil {
		return
	}
	for i, step := range steps.Items {
		r.steps(step.Get("parallel"), where.Item(i).Field("parallel"))
		r.install(step.Get("install"), where.Item(i).Field("install"))
		for k := range step.Fields {
			entry := &step.Fields[k]
			if !slices.Contains([]string{"create", "update", "apply"}, entry.Name) || len(entry.Value.Fields) != 1 {
				continue
			}
			name, at := entry.Value.Get("file"), where.Item(i).Field(entry.Name).Field("file")
			if name == nil || name.Kind != strictyaml.KindText {
				continue
			}
			manifests := Read(r.Decoder, r.from, name, at)
			switch len(manifests) {
			case 0: // Read has reported it
				entry.Value = &strictyaml.Node{Kind: strictyaml.KindRefused, Line: name.Line, Column: name.Column}
			case 1:
				entry.Value = manifests[0].Node
				r.replaced[entry.Value] = manifests[0].File
			default:
				r.Fail(name, fmt.Sprintf("%s %s has %d manifests; expected one", at, strictyaml.Quote(name.Raw), len(manifests)), "write one step and one file for each")
				entry.Value = manifests[0].Node
			}
		}
	}
}

// install replaces the items of a list that only name a file.
func (r replacer) install(list *strictyaml.Node, where *decode.Place) {
	if list == nil || list.Kind != strictyaml.KindList {
		return
	}
	var items []*strictyaml.Node
	for i, item := range list.Items {
		name := item.Get("file")
		if len(item.Fields) != 1 || name == nil || name.Kind != strictyaml.KindText {
			items = append(items, item)
			continue
		}
		for _, manifest := range Read(r.Decoder, r.from, name, where.Item(i).Field("file")) {
			r.replaced[manifest.Node] = manifest.File
			items = append(items, manifest.Node)
		}
	}
	list.Items = items
}

// Read returns the manifests of a file, or of the files of a pattern, that a scenario, whose file is from,
// names at a place.
func Read(d *decode.Decoder, from *files.File, at *strictyaml.Node, where *decode.Place) []Manifest {
	if !files.IsGlob(at.Raw) || path.IsAbs(at.Raw) || strings.Contains(at.Raw, `\`) {
		return readFile(d, from, at, where)
	}
	found, err := from.Glob(at.Raw)
	if err != nil || len(found) == 0 {
		problem := "no file matches the pattern"
		if err != nil {
			problem = err.Error()
		}
		d.Fail(at, fmt.Sprintf("%s %s: %s; expected files of Kubernetes manifests", where, strictyaml.Quote(at.Raw), problem), "the pattern is relative to this file")
		return nil
	}
	var out []Manifest
	for _, name := range found {
		one := *at
		one.Raw = name
		out = append(out, readFile(d, from, &one, where)...)
	}
	return out
}

// readFile is Read for one file.
func readFile(d *decode.Decoder, from *files.File, at *strictyaml.Node, where *decode.Place) []Manifest {
	const hint = "the path is relative to this file"
	refuse := func(problem, hint string) {
		d.Fail(at, fmt.Sprintf("%s %s: %s; expected a file of Kubernetes manifests", where, strictyaml.Quote(at.Raw), problem), hint)
	}
	if at.Raw == "" || path.IsAbs(at.Raw) || strings.Contains(at.Raw, `\`) {
		refuse("not a relative path with slashes", `write it as "../config/webhook.yaml"`)
		return nil
	}
	name, content, err := from.ReadManifests(at.Raw)
	var placed *fs.PathError
	switch {
	case errors.Is(err, files.ErrOutside):
		refuse(err.Error(), outsideHint)
		return nil
	case errors.As(err, &placed):
		refuse("cannot be read: "+placed.Err.Error(), hint)
		return nil
	case err != nil:
		refuse(err.Error(), hint)
		return nil
	}
	documents, problems := decode.PrivateDocuments(name, content)
	d.Errors = append(d.Errors, decode.Limit(problems)...)
	if len(documents) == 0 && len(problems) == 0 {
		refuse("has no manifest", "")
	}
	manifests, problems := check(name, documents)
	d.Errors = append(d.Errors, problems...)
	return manifests
}

// check returns the documents of another file that are manifests. No error shows a value of it.
func check(name string, documents []*strictyaml.Node) ([]Manifest, []*scenario.Error) {
	var manifests []Manifest
	inner := decode.Decoder{File: name, Private: true}
	for i, document := range documents {
		if document.Kind != strictyaml.KindMapping {
			inner.Fail(document, fmt.Sprintf("the document is %s; expected a Kubernetes manifest", document.Kind), "begin with apiVersion: and kind:")
			continue
		}
		if document.Text("apiVersion") == scenario.APIVersion {
			inner.Fail(document, "the document is a "+document.Text("kind")+" of admissiontest; expected a Kubernetes manifest", "")
			continue
		}
		inner.Manifest(document, decode.Root(name).Item(i))
		manifests = append(manifests, Manifest{name, document})
	}
	return manifests, inner.Errors
}
