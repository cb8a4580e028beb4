package engine

import (
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
)

// installations has the number of each scenario.Scenario.Installation. Scenarios with the same
// one have the same number, hence the same ID, namespace and Sandbox.
type installations map[string]int

// of returns the number of a scenario. Next is its number if it shares none.
func (n installations) of(s scenario.Scenario, next int) int {
	if s.Installation == "" {
		return next
	}
	if known, ok := n[s.Installation]; ok {
		return known
	}
	n[s.Installation] = next
	return next
}

// leaders returns the first case of each ID: the one that installs.
func leaders(cases []*execution.Case) []*execution.Case {
	var first []*execution.Case
	seen := map[string]bool{}
	for _, c := range cases {
		if !seen[c.ID] {
			seen[c.ID] = true
			first = append(first, c)
		}
	}
	return first
}

// followers returns the other cases with the ID of a case.
func followers(c *execution.Case, cases []*execution.Case) []*execution.Case {
	var others []*execution.Case
	for _, one := range cases {
		if one.ID == c.ID && one != c {
			others = append(others, one)
		}
	}
	return others
}

// leaderOf returns the first case with the ID of a case.
func leaderOf(c *execution.Case, cases []*execution.Case) *execution.Case {
	for _, one := range cases {
		if one.ID == c.ID {
			return one
		}
	}
	return c
}

// shareSandboxes gives each case the Sandbox of its leader.
func shareSandboxes(cases []*execution.Case) {
	for _, c := range cases {
		c.ShareSandbox(leaderOf(c, cases))
	}
}
