package document

import (
	"fmt"
	"strings"
)

// Path is the path to a value in a document, "spec.when[0].then". The empty one is that of the document.
type Path string

// Field returns the path of a field of a map.
func (p Path) Field(name string) Path {
	switch {
	case p == "":
		return Path(name)
	case strings.ContainsAny(name, "./ "):
		return Path(fmt.Sprintf("%s[%q]", string(p), name))
	default:
		return p + "." + Path(name)
	}
}

// Item returns the path of an item of a list.
func (p Path) Item(index int) Path { return Path(fmt.Sprintf("%s[%d]", string(p), index)) }

// String returns the path, or "the document".
func (p Path) String() string {
	if p == "" {
		return "the document"
	}
	return string(p)
}
