package expect

import "github.com/admissiontest/admissiontest/internal/match"

// Mismatch is one difference between a Result and an Expectation. Its path is the place of the difference: "code",
// "warnings[0]", `calls[1].request.object.metadata.labels["example.com/x"]`. Call is the index of the call in Result.Trace,
// or nil if the mismatch is not about one call in the Trace.
type Mismatch = match.Difference

// ofCall returns mismatches about one call.
func ofCall(found []Mismatch, call int) []Mismatch {
	for i := range found {
		found[i].Call = &call
	}
	return found
}

// one returns a single Mismatch without a Call.
func one(path, expected, actual string) []Mismatch {
	return []Mismatch{{Path: path, Expected: expected, Actual: actual}}
}
