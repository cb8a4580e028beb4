package document

import (
	"fmt"

	yaml "go.yaml.in/yaml/v4"
)

// maxDepth is the largest depth of nested values, far above that of any manifest.
const maxDepth = 64

// builder makes Nodes of a file from the output of the YAML parser, and collects Problems.
type builder struct {
	*source
	problems []Problem
	// twice is true if a map can have a field more than once.
	twice bool
}

// malformed reports a syntax error with the text of a parser, which can show a value.
func (b *builder) malformed(line, column int, message string) {
	if b.private {
		message = "the file is malformed"
	}
	b.refuse(line, column, message+"; expected YAML", "check quotes, brackets and indentation here and in the line above")
}

func (b *builder) fail(at *yaml.Node, message, hint string) {
	b.refuse(at.Line, at.Column, message, hint)
}

func (b *builder) refuse(line, column int, message, hint string) {
	b.problems = append(b.problems, Problem{b.node("", max(line, 1), max(column, 1)), message, hint})
}

// build returns the Node of a value, which is null if the value is refused.
func (b *builder) build(from *yaml.Node, depth int) *Node {
	switch {
	case depth > maxDepth:
		b.fail(from, fmt.Sprintf("values are nested more than %d levels deep; expected at most %d", maxDepth, maxDepth), "reduce the nesting")
	case from.Kind == yaml.AliasNode || from.Anchor != "":
		b.fail(from, "an anchor or alias (& or *); expected the value itself", "write the value out in each place (as: {name: jane, groups: [dev]}), name the file of an object (object: web.yaml), or put the text in quotes")
	case from.Style&yaml.TaggedStyle != 0:
		b.fail(from, "a value with a tag; expected one without", `put a string in quotes: "!x"`)
	case from.Kind == yaml.MappingNode:
		return b.mapping(from, depth)
	case from.Kind == yaml.SequenceNode:
		list := b.at(from, KindList)
		list.Items = make([]*Node, len(from.Content))
		for i, item := range from.Content {
			list.Items[i] = b.build(item, depth+1)
		}
		return list
	case from.Style == 0:
		return b.scalar(from)
	default:
		text := b.at(from, KindText)
		text.Value, text.Raw, text.style = from.Value, from.Value, from.Style
		return text
	}
	return b.at(from, KindNull)
}

func (b *builder) mapping(from *yaml.Node, depth int) *Node {
	mapping := b.at(from, KindMapping)
	mapping.Fields = make([]Field, 0, len(from.Content)/2)
	seen := make(map[string]*yaml.Node, len(from.Content)/2)
	for i := 0; i+1 < len(from.Content); i += 2 {
		key := from.Content[i]
		if !b.isName(key) {
			continue
		}
		first := seen[key.Value]
		if first != nil && !b.twice {
			b.fail(key, fmt.Sprintf("the field %s occurs twice; expected once", Quote(key.Value)),
				fmt.Sprintf("the first is in line %d: remove one", first.Line))
			continue
		}
		seen[key.Value] = key
		name := b.at(key, KindText)
		name.Value, name.Raw = key.Value, key.Value
		mapping.Fields = append(mapping.Fields, Field{Name: key.Value, Key: name, Value: b.build(from.Content[i+1], depth+1)})
	}
	return mapping
}

// isName reports whether a key is the name of a field, and a Problem if not. 200 and
// true are names too.
func (b *builder) isName(key *yaml.Node) bool {
	switch {
	case key.Tag == "!!merge":
		b.fail(key, "a merge key (<<); expected the fields themselves", "write the fields out")
	case key.Kind == yaml.AliasNode || key.Anchor != "":
		b.fail(key, "an anchor or alias (& or *); expected a field's name", "write it out, or put it in quotes")
	case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
		b.fail(key, "the name of a field is not a string; expected name: value", "write the name before a colon, in quotes if necessary")
	default:
		return true
	}
	return false
}

// at returns an empty Node with the position of a value.
func (b *builder) at(from *yaml.Node, of Kind) *Node { return b.node(of, from.Line, from.Column) }

func (b *builder) node(of Kind, line, column int) *Node {
	return &Node{Kind: of, Line: line, Column: column, source: b.source}
}
