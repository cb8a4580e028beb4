package document

import (
	"fmt"
	"strings"
)

// Path is the path to a value in a document, "spec.when[0].then". Nil is the document.
type Path struct {
	parent *Path
	name   string
	index  int // of an item, if name is empty
}

// Root returns the path of a field of the document, or of a file with that name.
func Root(name string) *Path { return (*Path)(nil).Field(name) }

// Field returns the path of a field of a map.
func (p *Path) Field(name string) *Path { return &Path{parent: p, name: name} }

// Item returns the path of an item of a list.
func (p *Path) Item(index int) *Path { return &Path{parent: p, index: index} }

// Name returns the name of a field, and "" for the document or an item of a list.
func (p *Path) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// String returns the path, or "the document".
func (p *Path) String() string {
	switch {
	case p == nil:
		return "the document"
	case p.name == "":
		return fmt.Sprintf("%s[%d]", p.parent, p.index)
	case p.parent == nil:
		return p.name
	case strings.ContainsAny(p.name, "./ "):
		return fmt.Sprintf("%s[%q]", p.parent, p.name)
	default:
		return p.parent.String() + "." + p.name
	}
}
