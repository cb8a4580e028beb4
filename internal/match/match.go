package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Absent is the actual value of a field that does not exist, unlike null.
type Absent struct{}

// Difference is one way in which an actual value is not the expected one.
type Difference struct {
	// Path begins with the path given to Match: "metadata.labels.x", "items[2]",
	// `labels["example.com/x"]`.
	Path string
	// Expected describes the values that match; Actual is the actual value, or
	// "(absent)".
	Expected, Actual string
	// Call is set by package judge: see judge.Mismatch.
	Call *int
}

// String returns the Difference on one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: expected %s, actual %s", d.Path, d.Expected, d.Actual)
}

// Matcher compares values and describes how they differ. The zero value shows all of them.
type Matcher struct {
	// Hide returns a string without what is not shown. It gets each text before a long one is cut. Nil
	// means that everything is shown.
	Hide func(text string) string

	// exact is true inside of $exact.
	exact bool
}

// Match is Match of the Matcher that shows all values.
func Match(expected, actual any, path string) []Difference {
	return Matcher{}.Match(expected, actual, path)
}

// Match compares an actual value with an expected one and returns every difference,
// or nil if it matches. The paths of the differences begin with path. If
// ValidateOperators refuses the expectation, there is one Difference with the reason.
func (m Matcher) Match(expected, actual any, path string) []Difference {
	if err := ValidateOperators(expected); err != nil {
		return []Difference{{Path: path, Expected: "a valid expectation", Actual: err.Error()}}
	}
	return m.differences(expected, actual, path)
}

// differences is Match for a valid expectation.
func (m Matcher) differences(expected, actual any, path string) []Difference {
	if hidden, ok := actual.(Hidden); ok {
		return m.hidden(expected, hidden, path)
	}
	expected, actual = shape(expected), shape(actual)
	switch want := expected.(type) {
	case nil:
		if actual == nil || actual == (Absent{}) {
			return nil
		}
	case map[string]any:
		if name, argument, ok := Operator(want); ok {
			return m.operate(operation{name, argument}, actual, path)
		}
		return m.mapping(want, actual, path)
	case []any:
		return m.list(want, actual, path)
	default:
		if scalarsEqual(want, actual) {
			return nil
		}
	}
	return m.differ(path, m.Describe(expected), actual)
}

func (m Matcher) holds(expected, actual any) bool {
	m.Hide = nil // the texts are not used
	return len(m.differences(expected, actual, "")) == 0
}

func (m Matcher) mapping(want map[string]any, actual any, path string) []Difference {
	got, isMapping := actual.(map[string]any)
	if !isMapping {
		if actual == (Absent{}) && len(want) > 0 && m.holdsWithoutFields(want) {
			return nil
		}
		return m.differ(path, m.Show(want), actual)
	}
	var found []Difference
	for _, key := range slices.Sorted(maps.Keys(want)) {
		found = append(found, m.differences(want[key], field(got, key), Key(path, key))...)
	}
	if m.exact {
		for _, key := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[key]; !ok {
				found = append(found, m.differ(Key(path, key), "no such field, because $exact does not list it", got[key])...)
			}
		}
	}
	return found
}

// holdsWithoutFields reports whether each expectation matches an absent field.
func (m Matcher) holdsWithoutFields(want map[string]any) bool {
	for _, expected := range want {
		if !m.holds(expected, Absent{}) {
			return false
		}
	}
	return true
}

func (m Matcher) list(want []any, actual any, path string) []Difference {
	got, isList := actual.([]any)
	if !isList {
		return m.differ(path, m.Show(want), actual)
	}
	if len(want) != len(got) {
		return []Difference{{
			Path:     path,
			Expected: counted(len(want)) + m.Show(want),
			Actual:   counted(len(got)) + m.Show(got),
		}}
	}
	var found []Difference
	for i := range want {
		found = append(found, m.differences(want[i], got[i], Index(path, i))...)
	}
	return found
}

func counted(items int) string {
	if items == 1 {
		return "1 item: "
	}
	return fmt.Sprintf("%d items: ", items)
}

func field(mapping map[string]any, key string) any {
	if value, ok := mapping[key]; ok {
		return value
	}
	return Absent{}
}

func (m Matcher) differ(path, expected string, actual any) []Difference {
	return []Difference{{Path: path, Expected: expected, Actual: m.Show(actual)}}
}

func scalarsEqual(want, got any) bool {
	if wantNumber, ok := number(want); ok {
		gotNumber, ok := number(got)
		return ok && wantNumber.compare(gotNumber) == 0
	}
	switch got.(type) {
	case string, bool, json.Number:
		return want == got
	default:
		return false
	}
}

// Equal reports whether two values are the same JSON value. Numbers are compared by
// value. There are no operators, and null is not absent.
func Equal(a, b any) bool {
	a, b = shape(reveal(a)), shape(reveal(b))
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !Equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case nil:
		return b == nil
	case Absent:
		return b == (any)(Absent{})
	default:
		return scalarsEqual(a, b)
	}
}

// shape converts a value to its JSON form, one level deep: nil, bool, string, a
// number, map[string]any, []any, or Absent.
func shape(value any) any {
	switch value := value.(type) {
	case nil, Absent, bool, string, json.Number, int, int64, float64:
		return value
	case map[string]any:
		if value == nil {
			return nil
		}
		return value
	case []any:
		if value == nil {
			return nil
		}
		return value
	default:
		return encoded(value)
	}
}

// unencodable is a Go value without a JSON form. It equals nothing.
type unencodable struct {
	goType string
}

// encoded encodes a value to JSON and decodes it.
func encoded(value any) any {
	var back any
	text, err := json.Marshal(value)
	if err == nil {
		back, err = decode(text)
	}
	if err != nil {
		return unencodable{fmt.Sprintf("%T", value)}
	}
	return back
}

// numeric is a number as the API server decodes it: an integer of 64 bits, or else
// the nearest float64.
type numeric struct {
	isWhole bool
	whole   int64
	float   float64
}

// number returns a value that shape returned as a number.
func number(value any) (numeric, bool) {
	switch value := value.(type) {
	case int:
		return wholeNumber(int64(value)), true
	case int64:
		return wholeNumber(value), true
	case float64:
		return numeric{float: value}, !math.IsNaN(value) && !math.IsInf(value, 0)
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return wholeNumber(whole), true
		}
		float, err := value.Float64()
		return numeric{float: float}, err == nil
	default:
		return numeric{}, false
	}
}

func wholeNumber(whole int64) numeric {
	return numeric{isWhole: true, whole: whole, float: float64(whole)}
}

// compare is exact for integers.
func (n numeric) compare(other numeric) int {
	if n.isWhole && other.isWhole {
		return cmp.Compare(n.whole, other.whole)
	}
	return cmp.Compare(n.float, other.float)
}

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
	switch name, argument, ok := Operator(expected); {
	case ok && name == opJWT:
		return m.inToken(argument, actual, path)
	case ok && (name == opAbsent || name == opNonEmpty), expected == nil:
		described = m.Describe(expected)
	}
	return []Difference{{Path: path, Expected: described, Actual: Redacted}}
}
