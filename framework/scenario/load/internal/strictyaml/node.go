package strictyaml

import (
	"fmt"

	yaml "go.yaml.in/yaml/v3"

	"github.com/admissiontest/admissiontest/internal/object"
)

// Kind is the kind of a Node. Its text is the name of the kind in messages.
type Kind string

// The kinds. In YAML's terms a Text is a string and a List is a sequence.
const (
	KindNull    Kind = "null"
	KindBool    Kind = "true or false"
	KindInteger Kind = "an integer"
	KindNumber  Kind = "a number"
	KindText    Kind = "a text"
	KindList    Kind = "a list"
	KindMapping Kind = "a mapping"
	// KindRefused is a value that Parse has reported a Problem for. Do not report another.
	KindRefused Kind = "refused"
)

// Node is a value of a file with its position.
type Node struct {
	Kind         Kind
	Line, Column int
	// Value is the bool, int64, float64 or string of a scalar, and nil for other kinds.
	Value any
	// Raw is the text of a scalar as it is written, without quotes.
	Raw string
	// Items are those of a list, Fields those of a mapping.
	Items  []*Node
	Fields []Field
	// lines are those of the file, for Locate. Nil for a text that is no scalar of a file.
	lines []string
	style yaml.Style
}

// Field is a field of a mapping, with the position of its name.
type Field struct {
	Name         string
	Line, Column int
	Value        *Node
}

// Get returns the value of a field. It is nil if there is no such field, or if the
// Node is nil or no mapping.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Has reports whether a mapping has a field.
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
	return &Node{Kind: KindList, Line: n.Line, Column: n.Column, Items: []*Node{n}}
}

// Find follows a path of field names (string) and list indexes (int), and returns
// the last Node on it that exists.
func (n *Node) Find(path []any) *Node {
	for _, step := range path {
		var next *Node
		switch step := step.(type) {
		case string:
			next = n.Get(step)
		case int:
			if step >= 0 && step < len(n.Items) {
				next = n.Items[step]
			}
		}
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

// Mapping returns the fields of a mapping as Plain does.
func (n *Node) Mapping() map[string]any {
	mapping := make(map[string]any, len(n.Fields))
	for i := range n.Fields {
		mapping[n.Fields[i].Name] = n.Fields[i].Value.Plain()
	}
	return mapping
}

// Describe returns a description of the value for messages.
func (n *Node) Describe() string {
	switch n.Kind {
	case KindText:
		return "the text " + Quote(n.Raw)
	case KindBool, KindInteger, KindNumber:
		return n.Raw
	default:
		return string(n.Kind)
	}
}

// Quote quotes a text for a message, and cuts it after 60 characters.
func Quote(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		return fmt.Sprintf("%q…", string(runes[:longest]))
	}
	return fmt.Sprintf("%q", text)
}

// Digits reports whether a text has only decimal digits, and at least one.
func Digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// Locate returns the position in the file of a character of a text: see object.Text.
func (n *Node) Locate(line, column int) (fileLine, fileColumn int) {
	if n.Kind != KindText || n.lines == nil {
		return n.Line, n.Column
	}
	return object.Text{Lines: n.lines, Line: n.Line, Column: n.Column, Style: n.style, Value: n.Raw}.Locate(line, column)
}
