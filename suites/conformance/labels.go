package conformance

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

// allTiers are the tiers, from the least that a behaviour takes to show to the most.
func allTiers() []string { return []string{"T0", "T0h", "T0k", "T1", "T2"} }

// tiers returns the tier of each behaviour.
func tiers() (map[string]string, error) {
	list, err := scenarios.Behaviours()
	out := make(map[string]string, len(list))
	for _, behaviour := range list {
		out[behaviour.ID] = behaviour.Tier
	}
	return out, err
}

// Labels returns the Ginkgo labels of a scenario: its area, its level, the
// highest tier of its behaviours where that is known, and the behaviours' IDs.
func Labels(s scenario.Scenario) ([]string, error) {
	known, err := tiers()
	return labels(s, known), err
}

func labels(s scenario.Scenario, known map[string]string) []string {
	var out []string
	if s.Area != "" {
		out = append(out, s.Area)
	}
	out = append(out, string(s.Spec.Level))
	highest := -1
	for _, id := range s.Spec.Behaviours {
		highest = max(highest, slices.Index(allTiers(), known[id]))
	}
	if highest >= 0 {
		out = append(out, allTiers()[highest])
	}
	return append(out, s.Spec.Behaviours...)
}
