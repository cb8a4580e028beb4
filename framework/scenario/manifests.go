package scenario

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// outsideHint is the hint for a path that leads out of the tree of the scenario.
const outsideHint = "the path is relative to this file; the file must be in the Git repository or Go module of the scenario or, without one, in the parent of the folder that you gave"

// givenFiles returns the manifests of spec.givenFiles.
func (d *decoder) givenFiles(spec *document.Node) []*document.Node {
	var out []*document.Node
	for i, item := range spec.List("givenFiles") {
		out = append(out, d.readManifests(item.Raw, item, document.Path("spec.givenFiles").Item(i))...)
	}
	return out
}

// stepFiles replaces the manifests of steps that only name a file, create: {file: pod.yaml}, by
// the manifest in that file, and those in install by all manifests in it.
func (d *decoder) stepFiles(steps *document.Node, where document.Path) {
	if steps == nil {
		return
	}
	for i, step := range steps.Items {
		here := where.Item(i)
		d.stepFiles(step.Get("parallel"), here.Field("parallel"))
		if install := step.Get("install"); install != nil {
			var items []*document.Node
			for k, item := range install.Items {
				items = append(items, d.manifestsOf(item, here.Field("install").Item(k))...)
			}
			install.Items = items
		}
		for k := range step.Fields {
			field := &step.Fields[k]
			if !slices.Contains([]string{"create", "update", "apply"}, field.Name) {
				continue
			}
			manifests := d.manifestsOf(field.Value, here.Field(field.Name))
			if len(manifests) > 1 {
				d.Fail(field.Value.Get("file"), fmt.Sprintf("%s: the file has %d manifests; expected one", here.Field(field.Name), len(manifests)), "write one step and one file for each")
			} else if len(manifests) == 1 {
				field.Value = manifests[0]
			}
		}
	}
}

// manifestsOf returns the manifests of a file, if a value only names one, else the value.
func (d *decoder) manifestsOf(n *document.Node, where document.Path) []*document.Node {
	if name := n.Get("file"); len(n.Fields) == 1 && name != nil && name.Kind == document.KindText {
		return d.readManifests(name.Raw, name, where.Field("file"))
	}
	return []*document.Node{n}
}

// readManifests returns the manifests of a file that is named at a path. No error shows a value of another file: it can be
// a Secret.
func (d *decoder) readManifests(written string, at *document.Node, where document.Path) []*document.Node {
	refuse := func(problem, hint string) {
		d.Fail(at, fmt.Sprintf("%s %s: %s; expected a file of Kubernetes manifests", where, document.Quote(written), problem), hint)
	}
	if written == "" || path.IsAbs(written) || strings.ContainsAny(written, `\*?`) {
		refuse("not a relative path with slashes and without wildcards", `write it as "../config/webhook.yaml"`)
		return nil
	}
	name, content, err := d.from.ReadManifests(written)
	if errors.Is(err, document.ErrOutside) {
		refuse(err.Error(), outsideHint)
		return nil
	} else if err != nil {
		refuse("cannot be read: "+err.Error(), "the path is relative to this file")
		return nil
	}
	documents, problems := document.ParsePrivate(name, content)
	d.Problems = append(d.Problems, limit(problems)...)
	if len(documents) == 0 && len(problems) == 0 {
		refuse("has no manifest", "")
	}
	var manifests []*document.Node
	for i, one := range documents {
		switch {
		case one.Kind != document.KindMapping:
			d.Fail(one, fmt.Sprintf("the document is %s; expected a Kubernetes manifest", one.Describe()), "begin with apiVersion: and kind:")
		case one.Text("apiVersion") == APIVersion:
			d.Fail(one, "the document is a "+one.Text("kind")+" of admissiontest; expected a Kubernetes manifest", "")
		default:
			d.manifest(one, document.Path(name).Item(i))
			manifests = append(manifests, one)
		}
	}
	return manifests
}

// manifest checks that a Kubernetes manifest has an apiVersion and a kind.
func (d *decoder) manifest(n *document.Node, where document.Path) {
	if n == nil || n.Kind != document.KindMapping {
		return
	}
	for _, name := range []string{"apiVersion", "kind"} {
		value := n.Get(name)
		switch {
		case value == nil:
			d.Fail(n, fmt.Sprintf("%s has no %s; expected a Kubernetes manifest", where, name), fmt.Sprintf("add %q", name+":"))
		case value.Kind != document.KindText || value.Raw == "":
			d.Fail(value, fmt.Sprintf("%s is %s; expected a string", where.Field(name), value.Describe()), "")
		}
	}
}
