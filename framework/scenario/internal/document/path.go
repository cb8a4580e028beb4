package document

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
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

// DidYouMean returns `did you mean "x"?` with the candidate that is most similar to
// a misspelt name, or "" if none is similar.
func DidYouMean(name string, candidates []string) string {
	return strings.TrimPrefix(suggest.DidYouMean(name, candidates), "; ")
}

// SuggestOrList returns DidYouMean, or a list of the candidates if none is similar,
// or none if there are no candidates.
func SuggestOrList(name string, candidates []string, none string) string {
	if hint := DidYouMean(name, candidates); hint != "" || len(candidates) == 0 {
		return cmp.Or(hint, none)
	}
	return "available: " + strings.Join(candidates, ", ")
}
