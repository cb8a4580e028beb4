package engine

import (
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
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
func leaders(cases []*scenarioCase) []*scenarioCase {
	var first []*scenarioCase
	seen := map[string]bool{}
	for _, c := range cases {
		if !seen[c.id] {
			seen[c.id] = true
			first = append(first, c)
		}
	}
	return first
}

// leaderOf returns the first case with the ID of a case.
func leaderOf(c *scenarioCase, cases []*scenarioCase) *scenarioCase {
	for _, one := range cases {
		if one.id == c.id {
			return one
		}
	}
	return c
}

// shareSandboxes gives each case the Sandbox of its leader.
func shareSandboxes(cases []*scenarioCase) {
	byID := map[string]target.Sandbox{}
	for _, c := range leaders(cases) {
		byID[c.id] = c.sandbox
	}
	for _, c := range cases {
		c.sandbox = byID[c.id]
	}
}
