package match_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/match"
)

// A hidden value matches what its value matches, and no difference shows it.
func TestHidden(t *testing.T) {
	const value = `{"pin":"1234"}`
	actual := map[string]any{"data": map[string]any{"a": match.Hidden{Value: value}, "list": match.Hidden{Value: []any{"1234"}}}, "b": "shown"}
	hidden := func(path, expected string) []match.Difference {
		return []match.Difference{{Path: path, Expected: expected, Actual: match.Redacted}}
	}
	for name, test := range map[string]struct {
		expected any
		want     []match.Difference
	}{
		"equal":     {map[string]any{"data": map[string]any{"a": value}}, nil},
		"not equal": {map[string]any{"data": map[string]any{"a": "1234"}}, hidden("data.a", match.Redacted)},
		"starts":    {map[string]any{"data": map[string]any{"a": map[string]any{"$startsWith": `{"pin`}}}, nil},
		"in JSON":   {map[string]any{"data": map[string]any{"a": map[string]any{"$json": map[string]any{"pin": "1235"}}}}, hidden("data.a", match.Redacted)},
		"item":      {map[string]any{"data": map[string]any{"list": []any{"1235"}}}, hidden("data.list", match.Redacted)},
		"absent":    {map[string]any{"data": map[string]any{"a": map[string]any{"$absent": true}}}, hidden("data.a", "no such field")},
		"null":      {map[string]any{"data": map[string]any{"a": nil}}, hidden("data.a", "null")},
		"entries": {
			map[string]any{"data": map[string]any{"$entries": []any{map[string]any{"key": "a"}}}},
			[]match.Difference{{
				Path: "data.$entries", Expected: `1 item: [{"key":"a"}]`,
				Actual: `2 items: [{"key":"a","value":"(redacted)"},{"key":"list","value":"(redacted)"}]`,
			}},
		},
		"whole": {map[string]any{"data": "x"}, []match.Difference{{Path: "data", Expected: `"x"`, Actual: `{"a":"(redacted)","list":"(redacted)"}`}}},
		"exact": {
			map[string]any{"data": map[string]any{"$exact": map[string]any{"list": []any{"1234"}}}},
			[]match.Difference{{Path: "data.a", Expected: "no such field, because $exact does not list it", Actual: match.Redacted}},
		},
	} {
		found := match.Match(test.expected, actual, "")
		if diff := cmp.Diff(test.want, found); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	inner, err := match.Lookup(actual, "data.list[0]")
	if err != nil || strings.Contains(match.Show(inner), "1234") || !match.Equal(inner, "1234") || match.Equal(inner, "1235") {
		t.Errorf("Lookup = %s, %v; want a hidden 1234", match.Show(inner), err)
	}
	if missing, err := match.Lookup(actual, "data.list[1]"); err != nil || missing != (any)(match.Absent{}) {
		t.Errorf("Lookup = %v, %v; want absent", missing, err)
	}
}
