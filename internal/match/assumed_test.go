package match_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/match"
)

func TestAssumptions(t *testing.T) {
	absent := map[string]any{"$absent": true}
	tests := []struct {
		name     string
		expected any
		want     []string
	}{
		{"proved", map[string]any{"data": map[string]any{"a": "b"}, "other": map[string]any{"$absent": false}}, nil},
		{"absent", map[string]any{"dta": absent}, []string{"dta"}},
		{"null", map[string]any{"dta": nil}, []string{"dta"}},
		{"both absent", map[string]any{"metadata": map[string]any{"lables": absent}}, []string{"metadata", "metadata.lables"}},
		{"one of", map[string]any{"a": map[string]any{"$oneOf": []any{nil, "x"}}}, []string{"a"}},
		{"in one of", map[string]any{"$oneOf": []any{map[string]any{"a": nil}}}, []string{"a written $oneOf[0].a"}},
		{"not of a value", map[string]any{"a": map[string]any{"$not": "b"}}, nil},
		{"below not", map[string]any{"$not": map[string]any{"dta": map[string]any{"a": "b"}}}, []string{"dta written $not.dta", "dta.a written $not.dta.a"}},
		{"exact", map[string]any{"a": map[string]any{"$exact": map[string]any{"b": absent}}}, []string{"a", "a.b written a.$exact.b"}},
		{"item", []any{map[string]any{"a": absent}}, []string{"[0].a"}},
		{"contains", map[string]any{"$contains": map[string]any{"a": absent}}, []string{"[0].a written $contains.a"}},
		{"contains all", map[string]any{"$containsAll": []any{"x", map[string]any{"a": absent}}}, []string{"[0].a written $containsAll[1].a"}},
		{"json", map[string]any{"$not": map[string]any{"$json": map[string]any{"a": "b"}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, one := range match.Assumptions(test.expected) {
				text := fmt.Sprint(one.Field)
				if fmt.Sprint(one.Written) != text {
					text += " written " + fmt.Sprint(one.Written)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Assumptions (- want, + got):\n%s", diff)
			}
		})
	}
}
