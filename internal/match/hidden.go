package match

import "encoding/json"

// Redacted is what a Difference shows for a Hidden value.
const Redacted = "(redacted)"

// Hidden is an actual value that is compared like Value, but that no Difference shows.
type Hidden struct{ Value any }

// MarshalJSON returns Redacted as a JSON string, for values that contain a Hidden one.
func (Hidden) MarshalJSON() ([]byte, error) { return json.Marshal(Redacted) }

// reveal returns the value of a Hidden one, and any other value as it is.
func reveal(value any) any {
	if hidden, ok := value.(Hidden); ok {
		return hidden.Value
	}
	return value
}

// hidden is differences for a Hidden value. A difference within the value is shown as one
// of the whole value.
func (m Matcher) hidden(expected any, actual Hidden, path string) []Difference {
	if m.holds(expected, actual.Value) {
		return nil
	}
	described := Redacted
	switch name, _, ok := Operator(expected); {
	case ok && (name == opAbsent || name == opNonEmpty), expected == nil:
		described = m.Describe(expected)
	}
	return []Difference{{Path: path, Expected: described, Actual: Redacted}}
}
