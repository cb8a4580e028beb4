package match

import "maps"

// Nearest returns the value nearest to actual that matches expected: actual with the fields that
// differ as they are expected. Values that an operator describes are its description in
// parentheses. Where a value that differs is Hidden, expected or actual, neither is shown. The
// result is Absent{} if no value is expected.
func (m Matcher) Nearest(expected, actual any) any {
	if ValidateOperators(expected) != nil {
		return actual
	}
	return m.nearest(expected, actual)
}

// nearest is Nearest for a valid expectation.
func (m Matcher) nearest(expected, actual any) any {
	if m.holds(reveal(expected), actual) {
		return actual
	}
	_, hiddenActual := actual.(Hidden)
	switch _, hidden := expected.(Hidden); {
	case hidden && actual == (any)(Absent{}):
		return expected
	case hidden, hiddenActual:
		return "(another value, redacted)"
	}
	switch want := shape(expected).(type) {
	case map[string]any:
		name, argument, ok := Operator(want)
		switch {
		case ok && name == opExact:
			return m.exactly().nearest(argument, actual)
		case ok && name == opAbsent && argument != false:
			return Absent{}
		case ok:
			return "(" + m.Describe(want) + ")"
		}
		return m.nearestMapping(want, actual)
	case []any:
		got, _ := shape(actual).([]any)
		out := make([]any, len(want))
		for i := range want {
			var item any = Absent{}
			if i < len(got) {
				item = got[i]
			}
			out[i] = m.nearest(want[i], item)
		}
		return out
	default:
		return want
	}
}

func (m Matcher) nearestMapping(want map[string]any, actual any) any {
	got, _ := shape(actual).(map[string]any)
	out := map[string]any{}
	if !m.exact {
		maps.Copy(out, got)
	}
	for key, expected := range want {
		if value := m.nearest(expected, field(got, key)); value == (any)(Absent{}) {
			delete(out, key)
		} else {
			out[key] = value
		}
	}
	return out
}
