package document

import (
	"cmp"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

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
