package judge

import (
	"github.com/admissiontest/admissiontest/internal/match"
)

// Mismatch is one way in which a Result is not what was expected.
type Mismatch struct {
	// Path says where: "code", "warnings[0]",
	// `calls[1].request.object.metadata.labels["example.com/x"]`.
	Path string
	// Expected describes the set that would have held: "one of 200, 201". Actual is
	// what was found, or "(absent)".
	Expected, Actual string
	// Call is the index into Result.Trace of the call that diverges. Nil where the
	// mismatch is not about one call that was made.
	Call *int
}

// String returns the Mismatch on one line.
func (m Mismatch) String() string {
	return match.Difference{Path: m.Path, Expected: m.Expected, Actual: m.Actual}.String()
}

// Match is match.Match with Mismatches: parts with the operators of
// scenario.Expectation. Nil means that the actual value matches.
func Match(expected, actual any, path string) []Mismatch {
	return mismatches(match.Match(expected, actual, path), nil)
}

// ValidateOperators is match.ValidateOperators.
func ValidateOperators(expected any) error { return match.ValidateOperators(expected) }

func mismatches(differences []match.Difference, call *int) []Mismatch {
	var found []Mismatch
	for _, d := range differences {
		found = append(found, Mismatch{Path: d.Path, Expected: d.Expected, Actual: d.Actual, Call: call})
	}
	return found
}

// one returns a single Mismatch about no call in particular.
func one(path, expected, actual string) []Mismatch {
	return []Mismatch{{Path: path, Expected: expected, Actual: actual}}
}
