package judge

import (
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// Mismatch is one difference between a Result and an Expectation.
type Mismatch struct {
	// Path is the place of the difference: "code", "warnings[0]",
	// `calls[1].request.object.metadata.labels["example.com/x"]`.
	Path string
	// Expected describes the values that match: "one of 200, 201". Actual is the actual
	// value, or "(absent)".
	Expected, Actual string
	// Call is the index of the call in Result.Trace. Nil if the mismatch is not about one
	// call in the Trace.
	Call *int
}

// String returns the Mismatch on one line.
func (m Mismatch) String() string {
	return match.Difference{Path: m.Path, Expected: m.Expected, Actual: m.Actual}.String()
}

// Match is match.Match with Mismatches as its result, which do not show the values of secrets. Nil means
// that the actual value matches.
func Match(expected, actual any, path string, secrets *redact.Set) []Mismatch {
	return compare(secrets).mismatches(expected, actual, path)
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

// one returns a single Mismatch without a Call.
func one(path, expected, actual string) []Mismatch {
	return []Mismatch{{Path: path, Expected: expected, Actual: actual}}
}
