// Package suggest finds the correct name for a misspelt one.
//
//	suggest.Nearest("reinvokation", areas) // "reinvocation"
//
// # Promise
//
// Case is ignored. The result is deterministic, and is always one of the candidates.
//
// # Not promised
//
// The limit for a suggestion can change. Only print a suggestion; never act on it.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// longest is the length of the longest name for which a suggestion is tried, in bytes.
const longest = 200

// Nearest returns the candidate that is nearest to a misspelt name, or "" if none is near.
func Nearest(name string, candidates []string) string {
	if name == "" || len(name) > longest {
		return ""
	}
	folded := strings.ToLower(name)
	if stem, is := strings.CutSuffix(folded, "y"); is && slices.Contains(candidates, stem+"ied") { // deny, denied
		return stem + "ied"
	}
	best, bestDistance := "", len(name)
	for _, candidate := range candidates {
		distance := levenshtein.Distance(folded, strings.ToLower(candidate), nil)
		if distance*3 <= len(name)+2 && distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// DidYouMean returns `; did you mean "x"?` for the end of an error, or "" if no candidate is near.
func DidYouMean(name string, candidates []string) string {
	if nearest := Nearest(name, candidates); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}
