package scenario

import (
	"strconv"
	"strings"

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
	if s.origin != nil {
		at, _ := s.origin.find(manifest).follow(object.SplitPath(field))
		if s.origin.isOther(at.node) {
			problem.File = at.node.File()
		}
		problem.Line, problem.Column = at.at.Line, at.at.Column
	}
	return problem
}

// ErrorIn is ErrorAt for a character in the string of a field, such as an expression: at its line and column
// in the string, from 1. If the field is no string that has it, the position is that of the field.
func (s Scenario) ErrorIn(manifest, field string, at [2]int, message string) *Error {
	problem := s.ErrorAt(manifest, field, message, "")
	if s.origin != nil {
		if found, complete := s.origin.find(manifest).follow(object.SplitPath(field)); complete && found.node.Kind == document.KindText {
			problem.Line, problem.Column = found.node.Locate(at[0], at[1])
		}
	}
	return problem
}

// FromFile reports whether a manifest is in another file than the scenario. Manifest is as in ErrorAt.
func (s Scenario) FromFile(manifest string) bool {
	return s.origin != nil && s.origin.isOther(s.origin.find(manifest).node)
}

// origin has the nodes of a scenario.
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
func (o *origin) isOther(n *document.Node) bool { return n.File() != o.spec.File() }

// find returns the value at a path in the spec, or the last one on it that exists.
func (o *origin) find(manifest string) spot {
	at, path := spot{o.spec, o.spec}, object.SplitPath(manifest)
	for known, other := range o.others {
		if rest, found := strings.CutPrefix(manifest, known); found {
			at, path = other, object.SplitPath(strings.TrimPrefix(rest, "."))
		}
	}
	if len(path) > 1 && path[0] == "given" {
		if index, err := strconv.Atoi(path[1]); err == nil && index >= 0 && index < len(o.given) {
			at, path = spot{o.given[index], o.given[index]}, path[2:]
		}
	}
	at, _ = at.follow(path)
	if o.isOther(at.node) && !o.isOther(at.at) {
		at.at = at.node // a manifest instead of the name of its file
	}
	return at
}

// follow returns the value at a path, or the last one on it that exists. Then complete is false.
func (s spot) follow(path []string) (at spot, complete bool) {
	for _, name := range path {
		if s.node.Kind == document.KindList && name == "inOrder" {
			continue // expected calls in order can be a list without this name
		}
		value, begin := s.node.Step(name)
		if value == nil {
			return s, false
		}
		s = spot{value, begin}
	}
	return s, true
}
