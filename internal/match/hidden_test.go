package match_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"testing/quick"

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
		t.Run(name, func(t *testing.T) {
			found := match.Match(test.expected, actual, "")
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	inner, err := match.Lookup(actual, "data.list[0]")
	if err != nil || strings.Contains(match.Matcher{}.Show(inner), "1234") || !match.Equal(inner, "1234") || match.Equal(inner, "1235") {
		t.Errorf("Lookup = %s, %v; want a hidden 1234", match.Matcher{}.Show(inner), err)
	}
	if missing, err := match.Lookup(actual, "data.list[1]"); err != nil || missing != (any)(match.Absent{}) {
		t.Errorf("Lookup = %v, %v; want absent", missing, err)
	}
}

// A value that is hidden in part matches exactly what the value matches.
func TestHiddenMatchesTheSame(t *testing.T) {
	config := &quick.Config{MaxCount: 3000, Rand: rand.New(rand.NewSource(3))}
	same := func(a, b jsonValue, seed int64) bool {
		hidden := hideSome(b.value, rand.New(rand.NewSource(seed)))
		for _, expected := range []any{a.value, b.value, m{"$not": a.value}, m{"$exact": a.value}, m{"$contains": a.value}, m{"$nonEmpty": true}} {
			if (match.Match(expected, b.value, "") == nil) != (match.Match(expected, hidden, "") == nil) {
				return false
			}
		}
		return match.Equal(b.value, hidden)
	}
	if err := quick.Check(same, config); err != nil {
		t.Error(err)
	}
}

// hideSome returns a value with some of its values hidden.
func hideSome(value any, r *rand.Rand) any {
	if r.Intn(4) == 0 {
		return match.Hidden{Value: value}
	}
	switch value := value.(type) {
	case m:
		out := m{}
		for key, inner := range value {
			out[key] = hideSome(inner, r)
		}
		return out
	case l:
		out := l{}
		for _, inner := range value {
			out = append(out, hideSome(inner, r))
		}
		return out
	default:
		return value
	}
}

// Hide gets whole texts, also those that are cut and those that are parts of others.
func TestHide(t *testing.T) {
	secret := strings.Repeat("secret ", 100)
	hiding := match.Matcher{Hide: func(text string) string { return strings.ReplaceAll(text, secret, "HIDDEN") }}
	for _, expected := range []any{
		m{"a": secret}, m{"a": m{"$oneOf": l{secret, "b"}}}, m{"a": m{"$not": m{"$startsWith": secret}}}, m{"a": m{"$exact": secret + "."}},
		m{"a": m{"$contains": secret + "."}}, m{"a": m{"$containsAll": l{secret}}}, m{"a": m{"$json": secret}}, m{"a": m{"$entries": l{secret}}},
		m{"a": m{"$absent": true}}, m{"a": l{secret}}, m{"a": m{"b": secret}}, m{"$exact": m{}},
	} {
		t.Run(fmt.Sprint(expected), func(t *testing.T) {
			actual := m{"a": secret + "!"}
			for _, one := range hiding.Match(expected, actual, "") {
				if text := one.String(); strings.Contains(text, "secret") || !strings.Contains(text, "HIDDEN") {
					t.Errorf("%v: got %s", expected, text)
				}
			}
		})
	}
}
