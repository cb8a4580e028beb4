package scenario

import (
	"strconv"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
	"github.com/admissiontest/admissiontest/internal/object"
)

// origin has the document of a scenario and the manifests of its files, for ErrorAt.
type origin struct {
	root *strictyaml.Node
	// files are the manifests of spec.givenFiles, which come first in Spec.Given.
	files []fileNode
	// stepFiles are the files of the manifests of steps that are in another file.
	stepFiles map[*strictyaml.Node]string
}

// fileNode is a document of a file.
type fileNode struct {
	file string
	node *strictyaml.Node
}

// ErrorAt returns an Error with the position of a manifest in the scenario, or of one of its
// fields. Manifest is a path in the spec, "given[1]" or "when[0].create"; an index of given is one of
// Spec.Given. Field is a path in the manifest as an API server writes it,
// "webhooks[0].rules[1].scope"; it can be empty. If the field does not exist, the position is that
// of the last part of the path that does. For a scenario that no loader read, the error has
// the File of the scenario, and no position.
func (s Scenario) ErrorAt(manifest, field, message, hint string) *Error {
	problem := &Error{File: s.File, Message: message, Hint: hint}
	if s.origin == nil {
		return problem
	}
	at, file := s.origin.find(object.SplitPath(manifest))
	if file != "" {
		problem.File = file
	}
	for _, step := range object.SplitPath(field) {
		next := at.step(step)
		if next.node == nil {
			break
		}
		at = next
	}
	problem.Line, problem.Column = at.line, at.column
	return problem
}

// FromFile reports whether a manifest of given is in one of GivenFiles. Its place is as in ErrorAt.
func (s Scenario) FromFile(manifest string) bool {
	path := object.SplitPath(manifest)
	if s.origin == nil || len(path) < 2 || path[0] != "given" {
		return false
	}
	index, err := strconv.Atoi(path[1])
	return err == nil && index < len(s.origin.files)
}

// spot is a value with its position: that of the name, for a field.
type spot struct {
	node         *strictyaml.Node
	line, column int
}

func spotOf(n *strictyaml.Node) spot {
	if n == nil {
		return spot{}
	}
	return spot{n, n.Line, n.Column}
}

// find returns the value at a path in the spec, and its file, if it is not that of the scenario.
func (o *origin) find(path []string) (found spot, file string) {
	at := spotOf(o.root.Get("spec"))
	if len(path) > 1 && path[0] == "given" {
		index, err := strconv.Atoi(path[1])
		if err == nil && index < len(o.files) {
			at, file = spotOf(o.files[index].node), o.files[index].file
			path = path[2:]
		} else if err == nil {
			path = append([]string{"given", strconv.Itoa(index - len(o.files))}, path[2:]...)
		}
	}
	for _, step := range path {
		next := at.step(step)
		if next.node == nil {
			break
		}
		at = next
		if other, ok := o.stepFiles[at.node]; ok {
			at, file = spotOf(at.node), other
		}
	}
	return at, file
}

// step returns a field of a mapping or an item of a list.
func (s spot) step(name string) spot {
	if s.node == nil {
		return spot{}
	}
	if s.node.Kind == strictyaml.KindList {
		index, err := strconv.Atoi(name)
		if err != nil || index < 0 || index >= len(s.node.Items) {
			return spot{}
		}
		return spotOf(s.node.Items[index])
	}
	for i := range s.node.Fields {
		if field := &s.node.Fields[i]; field.Name == name {
			return spot{field.Value, field.Line, field.Column}
		}
	}
	return spot{}
}
