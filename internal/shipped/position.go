package shipped

import (
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// ErrorAt returns an error about a field of the manifest with an index: "spec.rules[0].scope". If the
// field is not there, it has the position of the last part of the path that is.
func (p *Project) ErrorAt(index int, field, message, hint string) *scenario.Error {
	return p.Manifests[index].errorAt(field, message, hint)
}

func (m Manifest) errorAt(field, message, hint string) *scenario.Error {
	problem := &scenario.Error{File: m.File, Line: m.Line, Column: 1, Message: message, Hint: hint}
	var root yamlv3.Node
	if m.item || yamlv3.Unmarshal(m.text, &root) != nil || len(root.Content) == 0 {
		return problem
	}
	at := root.Content[0]
	line, column := at.Line, at.Column
	for _, step := range object.SplitPath(field) {
		next, nextLine, nextColumn := child(at, step)
		if next == nil {
			break
		}
		at, line, column = next, nextLine, nextColumn
	}
	problem.Line, problem.Column = m.Line+line-1, column
	return problem
}

// child returns a field of a mapping, with the position of its name, or an item of a list.
func child(n *yamlv3.Node, step string) (value *yamlv3.Node, line, column int) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Value == step {
				return n.Content[i+1], key.Line, key.Column
			}
		}
	case yamlv3.SequenceNode:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(n.Content) {
			item := n.Content[index]
			return item, item.Line, item.Column
		}
	}
	return nil, 0, 0
}
