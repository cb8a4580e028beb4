package scenario

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deep values nest, far above what any manifest needs.
const maxDepth = 64

// kind is what a node is. Its text is how messages call it.
type kind string

const (
	kindNull    kind = "nothing"
	kindBool    kind = "true or false"
	kindInteger kind = "an integer"
	kindNumber  kind = "a number"
	kindText    kind = "a text"
	kindList    kind = "a list"
	kindMapping kind = "a mapping"
)

// node is a value of a file with its place.
type node struct {
	kind         kind
	line, column int
	// value of a bool, int64, float64 or string.
	value any
	// raw is a scalar as it is written, without quotes.
	raw    string
	items  []*node
	fields []field
}

// field is a field of a mapping, with the place of its name.
type field struct {
	name         string
	line, column int
	value        *node
}

// get returns the value of a field, or nil if there is none, or no mapping.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// has reports whether a mapping has a field.
func (n *node) has(name string) bool { return n.get(name) != nil }

// text returns the text of a field, or "".
func (n *node) text(name string) string {
	if text, ok := n.get(name).plainValue().(string); ok {
		return text
	}
	return ""
}

// list returns the items of a field that is a list.
func (n *node) list(name string) []*node {
	if value := n.get(name); value != nil {
		return value.items
	}
	return nil
}

// find follows a path of names and indexes as far as it leads.
func (n *node) find(path []any) *node {
	for _, step := range path {
		var next *node
		switch step := step.(type) {
		case string:
			next = n.get(step)
		case int:
			if step >= 0 && step < len(n.items) {
				next = n.items[step]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// plainValue returns a node as Go values: nil, bool, int64, float64, string,
// []any and map[string]any.
func (n *node) plainValue() any {
	if n == nil {
		return nil
	}
	switch n.kind {
	case kindMapping:
		return n.mapping()
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.plainValue()
		}
		return list
	default:
		return n.value
	}
}

func (n *node) mapping() map[string]any {
	mapping := make(map[string]any, len(n.fields))
	for i := range n.fields {
		mapping[n.fields[i].name] = n.fields[i].value.plainValue()
	}
	return mapping
}

// describe says what a node is, for messages.
func (n *node) describe() string {
	switch n.kind {
	case kindText:
		return "the text " + shown(n.raw)
	case kindBool, kindInteger, kindNumber:
		return n.raw
	default:
		return string(n.kind)
	}
}

// builder makes nodes of a syntax tree and collects what is refused in it.
type builder struct {
	file   string
	errors []*Error
}

func (b *builder) fail(at *token.Token, message, hint string) {
	line, column := 1, 1
	if at != nil && at.Position != nil {
		line, column = at.Position.Line, at.Position.Column
	}
	b.errors = append(b.errors, &Error{b.file, line, column, message, hint})
}

// build returns the node of a syntax tree; what is refused in it becomes null.
func (b *builder) build(from ast.Node, depth int) *node {
	if depth > maxDepth {
		b.fail(from.GetToken(), fmt.Sprintf("more than %d values within each other", maxDepth), "nest less")
		return at(from.GetToken(), kindNull)
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		return b.mapping(from.GetToken(), from.Values, depth)
	case *ast.MappingValueNode:
		return b.mapping(from.Key.GetToken(), []*ast.MappingValueNode{from}, depth)
	case *ast.SequenceNode:
		list := at(from.GetToken(), kindList)
		list.items = make([]*node, len(from.Values))
		for i, item := range from.Values {
			list.items[i] = b.build(item, depth+1)
		}
		return list
	case *ast.StringNode:
		return b.text(from)
	case *ast.LiteralNode:
		text := at(from.GetToken(), kindText)
		text.value, text.raw = from.Value.Value, from.Value.Value
		return text
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return b.scalar(from.GetToken(), from.GetToken().Value)
	default:
		b.fail(from.GetToken(), fmt.Sprintf("YAML's %s cannot be used here", from.Type()), "write the value out")
		return at(from.GetToken(), kindNull)
	}
}

func (b *builder) mapping(start *token.Token, values []*ast.MappingValueNode, depth int) *node {
	mapping := at(start, kindMapping)
	mapping.fields = make([]field, 0, len(values))
	seen := make(map[string]*token.Token, len(values))
	for i, entry := range values {
		key := entry.Key.GetToken()
		if i == 0 && start.Type != token.MappingStartType {
			mapping.line, mapping.column = key.Position.Line, key.Position.Column
		}
		name, ok := b.key(entry.Key)
		if !ok {
			continue
		}
		if first, twice := seen[name]; twice {
			b.fail(key, fmt.Sprintf("field %s is there twice; expected once", shown(name)),
				fmt.Sprintf("the first is in line %d: remove one", first.Position.Line))
			continue
		}
		seen[name] = key
		mapping.fields = append(mapping.fields, field{
			name: name, line: key.Position.Line, column: key.Position.Column,
			value: b.build(entry.Value, depth+1),
		})
	}
	return mapping
}

// key returns the name that a key stands for: names are texts, however they look.
func (b *builder) key(from ast.MapKeyNode) (string, bool) {
	switch from := from.(type) {
	case *ast.StringNode:
		return from.Value, true
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return from.GetToken().Value, true
	default:
		b.fail(from.GetToken(), "a field's name must be a text", "write it in quotes")
		return "", false
	}
}

// at returns an empty node at the place of a token.
func at(tk *token.Token, of kind) *node {
	made := &node{kind: of, line: 1, column: 1}
	if tk != nil && tk.Position != nil {
		made.line, made.column = tk.Position.Line, tk.Position.Column
	}
	return made
}
