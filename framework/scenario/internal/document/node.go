package document

import (
	"fmt"
	"strconv"

	yaml "go.yaml.in/yaml/v4"

	"github.com/admissiontest/admissiontest/internal/object"
)

// Kind is the kind of a Node. Its text is the name of the kind in messages.
type Kind string

// The kinds, with the names that messages use.
const (
	KindNull    Kind = "null"
	KindBool    Kind = "true or false"
	KindInteger Kind = "an integer"
	KindNumber  Kind = "a number"
	KindText    Kind = "a string"
	KindList    Kind = "a list"
	KindMapping Kind = "a map"
)

// source is a file.
type source struct {
	name string
	// private is true if no Problem shows a value of the file, because it can be secret.
	private bool
	lines   []string
}

// Node is a value of a file with its position.
type Node struct {
	Kind         Kind
	Line, Column int
	// Value is the bool, int64, float64 or string of a scalar, and nil for other kinds.
	Value any
	// Raw is the text of a scalar as it is written, without quotes.
	Raw string
	// Items are the items of a list, Fields the fields of a map.
	Items  []*Node
	Fields []Field
	source *source
	style  yaml.Style
}

// Field is a field of a map.
type Field struct {
	Name string
	// Key has the position of the name.
	Key, Value *Node
}

// File returns the name of the file.
func (n *Node) File() string { return n.source.name }

// At returns a Node without a value, for a position in a file.
func At(file string, line, column int) *Node {
	return &Node{Kind: KindNull, Line: line, Column: column, source: &source{name: file}}
}

// Get returns the value of a field. It is nil if there is no such field, or if the
// Node is nil or no map.
func (n *Node) Get(name string) *Node {
	if n == nil || n.Kind != KindMapping {
		return nil
	}
	value, _ := n.Step(name)
	return value
}

// Step returns a field of a map or an item of a list, and where it begins: at its name, for a field. Both are nil if
// there is none.
func (n *Node) Step(name string) (value, begin *Node) {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value, n.Fields[i].Key
		}
	}
	if index, err := strconv.Atoi(name); err == nil && index >= 0 && index < len(n.Items) {
		return n.Items[index], n.Items[index]
	}
	return nil, nil
}

// Entries returns the fields of a map, or none of nil.
func (n *Node) Entries() []Field {
	if n == nil {
		return nil
	}
	return n.Fields
}

// Has reports whether a map has a field.
func (n *Node) Has(name string) bool { return n.Get(name) != nil }

// Text returns the text of a field, or "" if it is no text.
func (n *Node) Text(name string) string {
	if text, ok := n.Get(name).Plain().(string); ok {
		return text
	}
	return ""
}

// List returns the items of a field, or nil if it is no list.
func (n *Node) List(name string) []*Node {
	if value := n.Get(name); value != nil {
		return value.Items
	}
	return nil
}

// AsList returns a list and null as they are, and any other value as a list with
// this one item.
func (n *Node) AsList() *Node {
	if n.Kind == KindList || n.Kind == KindNull {
		return n
	}
	return &Node{Kind: KindList, Line: n.Line, Column: n.Column, Items: []*Node{n}, source: n.source}
}

// Find follows a path of field names and list indexes, and returns the last Node on it that exists.
func (n *Node) Find(path ...any) *Node {
	for _, step := range path {
		next, _ := n.Step(fmt.Sprint(step))
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// Plain returns the value as Go values without positions: nil, bool, int64,
// float64, string, []any and map[string]any.
func (n *Node) Plain() any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case KindMapping:
		return n.Mapping()
	case KindList:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Plain()
		}
		return list
	default:
		return n.Value
	}
}

// Mapping returns the fields of a map as Plain does.
func (n *Node) Mapping() map[string]any {
	mapping := make(map[string]any, len(n.Fields))
	for i := range n.Fields {
		mapping[n.Fields[i].Name] = n.Fields[i].Value.Plain()
	}
	return mapping
}

// Describe returns a description of the value for messages.
func (n *Node) Describe() string {
	switch {
	case n.source.private:
		return string(n.Kind)
	case n.Kind == KindText:
		return "the string " + Quote(n.Raw)
	case n.Kind == KindBool, n.Kind == KindInteger, n.Kind == KindNumber:
		return n.Raw
	default:
		return string(n.Kind)
	}
}

// Quote quotes a string for a message, and cuts it after 60 characters.
func Quote(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		return fmt.Sprintf("%q…", string(runes[:longest]))
	}
	return fmt.Sprintf("%q", text)
}

// Locate returns the position in the file of a character of a string: see object.Text.
func (n *Node) Locate(line, column int) (fileLine, fileColumn int) {
	if n.Kind != KindText {
		return n.Line, n.Column
	}
	return object.Text{Lines: n.source.lines, Line: n.Line, Column: n.Column, Style: n.style, Value: n.Raw}.Locate(line, column)
}
