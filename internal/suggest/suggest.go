// Package suggest finds what somebody meant who misspelt a name.
//
//	suggest.Nearest("reinvokation", areas) // "reinvocation"
//
// # Promise
//
// Case does not count. The answer is the same for the same names in the same
// order, and always one of the candidates.
//
// # Not promised
//
// What is near enough can change; only show a suggestion, never act on it.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// longest is the length of a name beyond which nobody misspelt one of ours.
const longest = 200

// Nearest returns the candidate that a misspelt name most likely means, or "".
func Nearest(name string, candidates []string) string {
	if name == "" || len(name) > longest {
		return ""
	}
	folded := strings.ToLower(name)
	best, bestDistance := "", len(name)
	for _, candidate := range candidates {
		distance := levenshtein.Distance(folded, strings.ToLower(candidate), nil)
		if distance*3 <= len(name)+2 && distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// DidYouMean returns `; did you mean "x"?` for the end of an error, or "" where
// nothing is near.
func DidYouMean(name string, candidates []string) string {
	if nearest := Nearest(name, candidates); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}
