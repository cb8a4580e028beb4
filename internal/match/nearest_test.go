package match_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/match"
)

func TestNearest(t *testing.T) {
	actual := m{"name": "a", "labels": m{"x": "1", "y": "2"}, "ports": l{m{"port": 80}, m{"port": 81}}}
	tests := map[string]struct{ expected, want any }{
		"it matches":           {m{"name": m{"$startsWith": "a"}}, actual},
		"a field differs":      {m{"labels": m{"x": "3"}}, m{"name": "a", "labels": m{"x": "3", "y": "2"}, "ports": l{m{"port": 80}, m{"port": 81}}}},
		"a field too many":     {m{"labels": m{"x": m{"$absent": true}}}, m{"name": "a", "labels": m{"y": "2"}, "ports": l{m{"port": 80}, m{"port": 81}}}},
		"an item too many":     {m{"ports": l{m{"port": 80}}}, m{"name": "a", "labels": m{"x": "1", "y": "2"}, "ports": l{m{"port": 80}}}},
		"an item more":         {m{"ports": l{m{}, m{}, m{"port": m{"$nonEmpty": true}}}}, m{"name": "a", "labels": m{"x": "1", "y": "2"}, "ports": l{m{"port": 80}, m{"port": 81}, m{"port": "(a value that is not empty)"}}}},
		"exactly these fields": {m{"$exact": m{"name": "a"}}, m{"name": "a"}},
		"an operator":          {m{"$oneOf": l{1, 2}}, "(one of 1, 2)"},
		"nothing":              {m{"$absent": true}, match.Absent{}},
		"malformed":            {m{"$nonsense": 1}, actual},
		"a map of a scalar":    {m{"name": m{"first": "b"}}, m{"name": m{"first": "b"}, "labels": m{"x": "1", "y": "2"}, "ports": l{m{"port": 80}, m{"port": 81}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := match.Matcher{}.Nearest(test.expected, actual)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// Where nothing differs, Nearest is the actual value; where something does, neither value of a
// Hidden one is shown.
func TestNearestOfExamples(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			got := match.Matcher{}.Nearest(e.expected, e.actual)
			if e.holds && !match.Equal(got, e.actual) {
				t.Errorf("got %v, want the actual value", got)
			}
		})
	}
	got := match.Matcher{}.Nearest(m{"data": m{"a": "expected", "b": "same", "c": m{"$startsWith": "x"}}}, m{"data": m{"a": match.Hidden{Value: "actual"}, "b": match.Hidden{Value: "same"}, "c": match.Hidden{Value: "y"}}})
	want := m{"data": m{"a": "(another value, redacted)", "b": match.Hidden{Value: "same"}, "c": "(another value, redacted)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	hidden := match.Hidden{Value: "expected"}
	got = match.Matcher{}.Nearest(m{"a": hidden, "b": hidden, "c": hidden}, m{"a": "expected", "b": "other"})
	if diff := cmp.Diff(m{"a": "expected", "b": "(another value, redacted)", "c": hidden}, got); diff != "" {
		t.Errorf("a hidden expectation (-want +got):\n%s", diff)
	}
}
