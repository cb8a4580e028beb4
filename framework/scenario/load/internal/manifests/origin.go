package manifests

import (
	"strconv"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Origin has the document of a scenario and the manifests of its files. It is a scenario.Origin.
type Origin struct {
	// Root is the document.
	Root *strictyaml.Node
	// Given are the manifests of spec.givenFiles, which come first in Spec.Given.
	Given []Manifest
	// Steps are the files of the manifests of steps that are in another file.
	Steps map[*strictyaml.Node]string
}

// Position returns the position of a manifest or of one of its fields, and its file, if it is not
// that of the scenario.
func (o *Origin) Position(manifest, field string) (file string, line, column int) {
	at, file, _ := o.field(manifest, field)
	return file, at.line, at.column
}

// Locate returns the position of a character in the text of a field. If the field is no text that has it,
// it is the position of the field.
func (o *Origin) Locate(manifest, field string, line, column int) (file string, fileLine, fileColumn int) {
	at, file, complete := o.field(manifest, field)
	if !complete || at.node.Kind != strictyaml.KindText {
		return file, at.line, at.column
	}
	fileLine, fileColumn = at.node.Locate(line, column)
	return file, fileLine, fileColumn
}

// field returns a field of a manifest, or the last value on the path to it. Then complete is false.
func (o *Origin) field(manifest, field string) (at spot, file string, complete bool) {
	at, file = o.find(object.SplitPath(manifest))
	for _, step := range object.SplitPath(field) {
		next := at.step(step)
		if next.node == nil {
			return at, file, false
		}
		at = next
	}
	return at, file, at.node != nil
}

// FromFile reports whether a manifest is in another file.
func (o *Origin) FromFile(manifest string) bool {
	_, file := o.find(object.SplitPath(manifest))
	return file != ""
}

// givenIndex returns the index of a path in Spec.Given: 1 for "given[1]".
func givenIndex(path []string) (index int, ok bool) {
	if len(path) < 2 || path[0] != "given" {
		return 0, false
	}
	index, err := strconv.Atoi(path[1])
	return index, err == nil && index >= 0
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
func (o *Origin) find(path []string) (found spot, file string) {
	at := spotOf(o.Root.Get("spec"))
	if index, ok := givenIndex(path); ok && index < len(o.Given) {
		at, file = spotOf(o.Given[index].Node), o.Given[index].File
		path = path[2:]
	} else if ok {
		path = append([]string{"given", strconv.Itoa(index - len(o.Given))}, path[2:]...)
	}
	for _, step := range path {
		next := at.step(step)
		if next.node == nil {
			break
		}
		at = next
		if other, ok := o.Steps[at.node]; ok {
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
		if name == "inOrder" {
			return s // expected calls in order can be a list without this name
		}
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
