package scenario

import (
	"slices"
	"strconv"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
	"github.com/admissiontest/admissiontest/internal/object"
)

// ErrorAt returns an Error with the position of a manifest in the scenario, or of one of its
// fields. Manifest is a path in the spec, "given[1]" or "when[0].create"; an index of given is one of
// Spec.Given. Field is a path in the manifest as an API server writes it,
// "webhooks[0].rules[1].scope"; it can be empty. If the field does not exist, the position is that
// of the last part of the path that does. For a scenario that Load did not return, the error has
// the File of the scenario, and no position.
func (s Scenario) ErrorAt(manifest, field, message, hint string) *Error {
	problem := &Error{File: s.File, Message: message, Hint: hint}
	at, _ := s.origin.field(manifest, field)
	s.origin.setPosition(at, problem)
	return problem
}

// ErrorIn is ErrorAt for a character in the string of a field, such as an expression: at its line and column
// in the string, from 1. If the field is no string that has it, the position is that of the field.
func (s Scenario) ErrorIn(manifest, field string, at [2]int, message string) *Error {
	problem := &Error{File: s.File, Message: message}
	found, complete := s.origin.field(manifest, field)
	s.origin.setPosition(found, problem)
	if complete && found.node.Kind == document.KindText {
		problem.Line, problem.Column = found.node.Locate(at[0], at[1])
	}
	return problem
}

// FromFile reports whether a manifest is in another file than the scenario. Manifest is as in ErrorAt.
func (s Scenario) FromFile(manifest string) bool {
	return s.origin.isOther(s.origin.find(object.SplitPath(manifest)).node)
}

// origin has the nodes of a scenario. Nil is that of a scenario that is from no file.
type origin struct {
	// spec is the spec of the document, or what stands for it in a PolicyTest.
	spec *document.Node
	// given are the manifests of Spec.Given, and others those that are elsewhere in the scenario, by their paths.
	given  []*document.Node
	others map[string]spot
}

// spot is a value and where it begins: at its name, for a field.
type spot struct{ node, at *document.Node }

// isOther reports whether a value is in another file than the scenario.
func (o *origin) isOther(n *document.Node) bool {
	return n != nil && n.File() != o.spec.File()
}

// setPosition sets the position of an error.
func (o *origin) setPosition(at spot, problem *Error) {
	if at.node == nil {
		return
	}
	if o.isOther(at.node) {
		problem.File = at.node.File()
	}
	problem.Line, problem.Column = at.at.Line, at.at.Column
}

// field returns a field of a manifest, or the last value on the path to it. Then complete is false.
func (o *origin) field(manifest, field string) (at spot, complete bool) {
	at = o.find(object.SplitPath(manifest))
	for _, step := range object.SplitPath(field) {
		next := at.step(step)
		if next.node == nil {
			return at, false
		}
		at = next
	}
	return at, at.node != nil
}

// find returns the value at a path in the spec, or the last one on it that exists.
func (o *origin) find(path []string) spot {
	if o == nil {
		return spot{}
	}
	at := spot{o.spec, o.spec}
	if len(path) > 1 && path[0] == "given" {
		if index, err := strconv.Atoi(path[1]); err == nil && index >= 0 && index < len(o.given) {
			at, path = spot{o.given[index], o.given[index]}, path[2:]
		}
	}
	for known, manifest := range o.others {
		if begins := object.SplitPath(known); len(path) >= len(begins) && slices.Equal(path[:len(begins)], begins) {
			at, path = manifest, path[len(begins):]
			break
		}
	}
	for _, step := range path {
		next := at.step(step)
		if next.node == nil {
			break
		}
		if o.isOther(next.node) && !o.isOther(at.node) {
			next.at = next.node
		}
		at = next
	}
	return at
}

// step returns a field of a map or an item of a list.
func (s spot) step(name string) spot {
	if s.node == nil {
		return spot{}
	}
	if s.node.Kind == document.KindList {
		if name == "inOrder" {
			return s // expected calls in order can be a list without this name
		}
		index, err := strconv.Atoi(name)
		if err != nil || index < 0 || index >= len(s.node.Items) {
			return spot{}
		}
		return spot{s.node.Items[index], s.node.Items[index]}
	}
	for _, field := range s.node.Fields {
		if field.Name == name {
			return spot{field.Value, field.Key}
		}
	}
	return spot{}
}
