package match_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/golden"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/match"
)

func TestValidateOperatorsAccepts(t *testing.T) {
	for _, e := range []any{
		nil, "$oneOf", 1, m{}, l{}, m{"a": "$not"},
		m{"$oneOf": l{nil}}, m{"$not": nil}, m{"$absent": false}, m{"$exact": m{}}, m{"$contains": 1},
		m{"$containsAll": l{m{"$startsWith": "x"}}}, m{"$nonEmpty": true}, m{"$number": m{"atLeast": 1, "atMost": 1}},
		m{"$json": m{"$contains": "a"}}, m{"a.$b": 1, "c": 2}, m{"$(policy.p)/key": "x"}, m{"$(policy.p)/key": "x", "c": 2},
	} {
		t.Run(fmt.Sprint(e), func(t *testing.T) {
			if err := match.ValidateOperators(e); err != nil {
				t.Errorf("ValidateOperators(%v): %v", e, err)
			}
		})
	}
}

func TestValidateOperatorsRefuses(t *testing.T) {
	var texts strings.Builder
	for _, e := range []any{
		m{"$contain": "x"},
		m{"$oneof": l{"x"}},
		m{"$somethingElseAltogether": "x"},
		m{"spec": m{"ports": l{m{}, m{"port": m{"$numbr": 1}}}}},
		m{"labels": m{"example.com/x": m{"$absent": "yes"}}},
		m{"$absent": true, "name": "x"},
		m{"$oneOf": "a"}, m{"$oneOf": l{}}, m{"$oneOf": l{"a", m{"$absent": 1}}},
		m{"$containsAll": m{}}, m{"$contains": ""}, m{"$startsWith": 1}, m{"$startsWith": ""},
		m{"$nonEmpty": false}, m{"$nonEmpty": m{}},
		m{"$number": 3}, m{"$number": m{}}, m{"$number": m{"min": 1}}, m{"$number": m{"atLeast": "1"}},
		m{"$number": m{"atLeast": 2, "atMost": 1}},
		m{"$not": m{"$no": 1}}, m{"$exact": m{"a": m{"$x": 1}}}, m{"$json": m{"$startsWith": nil}},
	} {
		err := match.ValidateOperators(e)
		if err == nil {
			t.Errorf("ValidateOperators(%v): no error", e)
			continue
		}
		if differences := match.Match(e, m{}, "it"); len(differences) != 1 || differences[0].Actual != err.Error() {
			t.Errorf("Match(%v): got %v, want the error of ValidateOperators", e, differences)
		}
		fmt.Fprintln(&texts, err)
	}
	golden.Compare(t, filepath.Join("testdata", "operators.golden"), texts.String())
}

func TestOperatorErrorHasThePlace(t *testing.T) {
	err := match.ValidateOperators(m{"a": l{1, m{"$not": m{"$absnt": true}}}})
	var problem *match.OperatorError
	if !errors.As(err, &problem) {
		t.Fatalf("got %T, want *match.OperatorError", err)
	}
	if diff := cmp.Diff(match.Path{"a", 1, "$not"}, problem.Path); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	if problem.Operator != "$absnt" || problem.Hint != "$absent" {
		t.Errorf("got operator %q and hint %q", problem.Operator, problem.Hint)
	}
}

func TestAssignFindsTheLargest(t *testing.T) {
	fits := [][]bool{{true, true, false}, {true, false, false}, {false, true, true}, {false, false, false}}
	got := match.Assign(4, 3, func(e, a int) bool { return fits[e][a] })
	if diff := cmp.Diff([]int{1, 0, 2, -1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	var texts strings.Builder
	for _, e := range []any{
		m{"$oneOf": l{"a", m{"$not": nil}}}, m{"$absent": true}, m{"$absent": false}, m{"$exact": m{"a": 1}},
		m{"$contains": "<a>"}, m{"$contains": m{"a": 1}}, m{"$containsAll": l{"a", 2}}, m{"$startsWith": "a"},
		m{"$nonEmpty": true}, m{"$number": m{"atLeast": 1}}, m{"$number": m{"atMost": 2}},
		m{"$number": m{"atLeast": 1, "atMost": 2}}, m{"$json": m{"a": 1}}, m{"$what": 1}, m{"a": m{"$not": 1}},
		match.Absent{}, nil,
	} {
		fmt.Fprintln(&texts, match.Matcher{}.Describe(e))
	}
	golden.Compare(t, filepath.Join("testdata", "describe.golden"), texts.String())
	if got := (match.Matcher{}).Show(func() {}); got != "a Go value of type func(), which cannot be encoded as JSON" {
		t.Errorf("Show of what JSON has not: got %q", got)
	}
}
