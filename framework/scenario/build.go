package scenario

import (
	"fmt"

	yaml "go.yaml.in/yaml/v3"
)

// maxDepth bounds how deep values nest, far above what any manifest needs.
const maxDepth = 64

// builder makes nodes of what the YAML parser read, and collects what the format
// refuses.
type builder struct {
	file   string
	errors []*Error
}

func (b *builder) fail(at *yaml.Node, message, hint string) {
	b.refuse(at.Line, at.Column, message, hint)
}

func (b *builder) refuse(line, column int, message, hint string) {
	b.errors = append(b.errors, &Error{b.file, max(line, 1), max(column, 1), message, hint})
}

// build returns the node of a value; what is refused in it has kindRefused.
func (b *builder) build(from *yaml.Node, depth int) *node {
	switch {
	case depth > maxDepth:
		b.fail(from, fmt.Sprintf("more than %d values within each other; expected at most so many", maxDepth), "nest less")
	case from.Kind == yaml.AliasNode || from.Anchor != "":
		b.fail(from, "an anchor or alias (& or *); expected every value where it is used", "write the value out, or put the text in quotes")
	case from.Style&yaml.TaggedStyle != 0:
		b.fail(from, fmt.Sprintf("the tag %s; expected a value without one", from.ShortTag()), `put a text in quotes: "!x"`)
	case from.Kind == yaml.MappingNode:
		return b.mapping(from, depth)
	case from.Kind == yaml.SequenceNode:
		list := at(from, kindList)
		list.items = make([]*node, len(from.Content))
		for i, item := range from.Content {
			list.items[i] = b.build(item, depth+1)
		}
		return list
	case from.Style == 0:
		return b.scalar(from)
	default:
		text := at(from, kindText)
		text.value, text.raw = from.Value, from.Value
		return text
	}
	return at(from, kindRefused)
}

func (b *builder) mapping(from *yaml.Node, depth int) *node {
	mapping := at(from, kindMapping)
	mapping.fields = make([]field, 0, len(from.Content)/2)
	var seen map[string]*yaml.Node
	const few = 16 // up to so many a look at each is quicker than a map
	if len(from.Content)/2 > few {
		seen = make(map[string]*yaml.Node, len(from.Content)/2)
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		key := from.Content[i]
		if !b.isName(key) {
			continue
		}
		first := seen[key.Value]
		if seen == nil {
			first = earlier(from.Content[:i], key.Value)
		} else if first == nil {
			seen[key.Value] = key
		}
		if first != nil {
			b.fail(key, fmt.Sprintf("field %s is there twice; expected once", shown(key.Value)),
				fmt.Sprintf("the first is in line %d: remove one", first.Line))
			continue
		}
		mapping.fields = append(mapping.fields, field{
			name: key.Value, line: key.Line, column: key.Column,
			value: b.build(from.Content[i+1], depth+1),
		})
	}
	return mapping
}

// earlier returns the key of that name among the keys and values of a mapping.
func earlier(content []*yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(content); i += 2 {
		if content[i].Kind == yaml.ScalarNode && content[i].Value == name {
			return content[i]
		}
	}
	return nil
}

// isName reports whether a key is the name of a field. A name is a text, however
// it looks: 200 and true are names too.
func (b *builder) isName(key *yaml.Node) bool {
	switch {
	case key.Tag == "!!merge":
		b.fail(key, "a merge key (<<); expected every field where it is used", "write the fields out")
	case key.Kind == yaml.AliasNode || key.Anchor != "":
		b.fail(key, "an anchor or alias (& or *); expected a field's name", "write it out, or put it in quotes")
	case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
		b.fail(key, "a field's name that is no text; expected name: value", "write the name before a colon, in quotes if need be")
	default:
		return true
	}
	return false
}

// at returns an empty node at the place of a value.
func at(from *yaml.Node, of kind) *node {
	return &node{kind: of, line: from.Line, column: from.Column}
}
