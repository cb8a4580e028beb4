package scenario

import (
	"cmp"
	"slices"
)

// Case is a case of a PolicyTest: a request, and what is expected. Cases of one Scenario do not influence
// each other, and each has its own outcome. The fields are as in a Scenario.
type Case struct {
	Name, Requirement string
	Needs             []string
	When              []Step
	Line, Column      int
	Lines             []int
	origin            *origin
}

// IsPolicyTest reports whether the scenario is made of a PolicyTest.
func (s Scenario) IsPolicyTest() bool { return len(s.Cases) > 0 }

// Cases returns what has an outcome, in the order of the names: for each case of a PolicyTest, a Scenario that has
// the fields of the case and no other case, and all other scenarios unchanged.
func Cases(all []Scenario) []Scenario {
	var out []Scenario
	for _, s := range all {
		out = append(out, s.each()...)
	}
	slices.SortStableFunc(out, func(a, b Scenario) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// Keep returns scenarios with the cases for which a function returns true. The function gets what Cases returns.
func Keep(all []Scenario, keep func(Scenario) bool) []Scenario {
	var out []Scenario
	for _, s := range all {
		var cases []Case
		kept := 0
		for _, one := range s.each() {
			if keep(one) {
				cases = append(cases, one.Cases...)
				kept++
			}
		}
		if s.Cases = cases; kept > 0 {
			out = append(out, s)
		}
	}
	return out
}

// each is Cases for one scenario, in the order of its cases.
func (s Scenario) each() []Scenario {
	if !s.IsPolicyTest() {
		return []Scenario{s}
	}
	out := make([]Scenario, len(s.Cases))
	for i, c := range s.Cases {
		one := s
		one.Cases = []Case{c}
		one.Metadata.Name, one.Spec.Requirement, one.Spec.Needs, one.Spec.When = c.Name, c.Requirement, c.Needs, c.When
		one.Line, one.Column, one.Lines, one.origin = c.Line, c.Column, c.Lines, c.origin
		out[i] = one
	}
	return out
}
