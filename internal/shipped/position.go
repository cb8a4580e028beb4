package shipped

import (
	"strconv"
	"strings"

	yamlv4 "go.yaml.in/yaml/v4"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// ErrorAt returns an error about a field of the manifest with an index: "spec.rules[0].scope". If the
// field is not there, it has the position of the last part of the path that is.
func (p *Project) ErrorAt(index int, field, message, hint string) *scenario.Error {
	return p.Manifests[index].errorAt(field, message, hint)
}

// ErrorIn is ErrorAt for a character in the text of a field: at its line and column in the text, from 1.
func (p *Project) ErrorIn(index int, field string, at [2]int, message string) *scenario.Error {
	m := p.Manifests[index]
	problem, value := m.find(field)
	problem.Message = message
	if value != nil && value.Kind == yamlv4.ScalarNode {
		text := object.Text{Lines: strings.Split(string(m.text), "\n"), Line: value.Line, Column: value.Column, Style: value.Style, Value: value.Value}
		problem.Line, problem.Column = text.Locate(at[0], at[1])
		problem.Line += m.Line - 1
	}
	return problem
}

// Position returns the line and column of a field of the object: "webhooks[0].rules". If the field is not there,
// it is the position of the last part of the path that is.
func (m Manifest) Position(field string) (line, column int) {
	problem, _ := m.find(field)
	return problem.Line, problem.Column
}

func (m Manifest) errorAt(field, message, hint string) *scenario.Error {
	problem, _ := m.find(field)
	problem.Message, problem.Hint = message, hint
	return problem
}

// find returns an error with the position of a field, and its value; nil if the field is not there.
func (m Manifest) find(field string) (problem *scenario.Error, value *yamlv4.Node) {
	problem = &scenario.Error{File: m.File, Line: m.Line, Column: 1}
	var root yamlv4.Node
	if yamlv4.Unmarshal(m.text, &root) != nil || len(root.Content) == 0 {
		return problem, nil
	}
	value = root.Content[0]
	problem.Line, problem.Column = m.Line+value.Line-1, value.Column
	for _, step := range object.SplitPath(m.path + field) {
		next, line, column := child(value, step)
		if next == nil {
			return problem, nil
		}
		value, problem.Line, problem.Column = next, m.Line+line-1, column
	}
	return problem, value
}

// child returns a field of a map, with the position of its name, or an item of a list.
func child(n *yamlv4.Node, step string) (value *yamlv4.Node, line, column int) {
	switch n.Kind {
	case yamlv4.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Value == step {
				return n.Content[i+1], key.Line, key.Column
			}
		}
	case yamlv4.SequenceNode:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(n.Content) {
			item := n.Content[index]
			return item, item.Line, item.Column
		}
	}
	return nil, 0, 0
}
