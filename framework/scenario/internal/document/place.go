package document

import (
	"fmt"
	"strings"
)

// Place is the path to a value in a document, "spec.when[0].then". Nil is the document.
type Place struct {
	parent *Place
	name   string
	index  int // of an item, if name is empty
}

// Root returns the place of a field of the document, or of a file with that name.
func Root(name string) *Place { return (*Place)(nil).Field(name) }

// Field returns the place of a field of a mapping.
func (p *Place) Field(name string) *Place { return &Place{parent: p, name: name} }

// Item returns the place of an item of a list.
func (p *Place) Item(index int) *Place { return &Place{parent: p, index: index} }

// Name returns the name of a field, and "" for the document or an item of a list.
func (p *Place) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// String returns the path, or "the document".
func (p *Place) String() string {
	switch {
	case p == nil:
		return "the document"
	case p.name == "":
		return fmt.Sprintf("%s[%d]", p.parent, p.index)
	case p.parent == nil:
		return p.name
	case strings.Contains(p.name, "."):
		return fmt.Sprintf("%s[%q]", p.parent, p.name)
	default:
		return p.parent.String() + "." + p.name
	}
}
