package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown describes scenarios: the name, the names of the cases, and the steps, line and requirement.
func shown(all []Scenario) []string {
	var out []string
	for _, s := range all {
		var cases []string
		for _, c := range s.Cases {
			cases = append(cases, c.Name)
		}
		out = append(out, fmt.Sprintf("%s [%s] %d steps, line %d %v, needs %v, %d given", s.Metadata.Name, strings.Join(cases, " "), len(s.Spec.When), s.Line, s.Lines, s.Spec.Needs, len(s.Spec.Given)))
	}
	return out
}

func TestCases(t *testing.T) {
	t.Parallel()
	given := []map[string]any{{"kind": "ConfigMap"}}
	plain := Scenario{Metadata: Metadata{Name: "m"}, Line: 1, Spec: Spec{When: []Step{{}}}}
	table := func(names ...string) Scenario {
		s := Scenario{Metadata: Metadata{Name: "table"}, Line: 2, Spec: Spec{Given: given}}
		for i, name := range names {
			s.Cases = append(s.Cases, Case{Name: name, Line: 10 + i, Lines: []int{10 + i, 10 + i}, When: make([]Step, 2), Needs: []string{name}})
		}
		return s
	}
	all := []Scenario{table("z", "a"), plain, table("n")}
	want := []string{
		"a [a] 2 steps, line 11 [11 11], needs [a], 1 given", "m [] 1 steps, line 1 [], needs [], 0 given",
		"n [n] 2 steps, line 10 [10 10], needs [n], 1 given", "z [z] 2 steps, line 10 [10 10], needs [z], 1 given",
	}
	cases := Cases(all)
	if diff := cmp.Diff(want, shown(cases)); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, shown(Cases(cases))); diff != "" {
		t.Errorf("cases of cases (-want +got):\n%s", diff)
	}
	kept := Keep(all, func(s Scenario) bool { return s.Metadata.Name < "n" })
	want = []string{"table [a] 0 steps, line 2 [], needs [], 1 given", "m [] 1 steps, line 1 [], needs [], 0 given"}
	if diff := cmp.Diff(want, shown(kept)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(all[0].Cases) != 2 {
		t.Error("Keep changed its argument")
	}
	for _, s := range all {
		if s.IsPolicyTest() != (s.Metadata.Name == "table") {
			t.Errorf("%s: IsPolicyTest = %v", s.Metadata.Name, s.IsPolicyTest())
		}
	}
}
