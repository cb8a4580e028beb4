package plan

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
)

// allTiers are the tiers of behaviours, from the one that needs the least to the one that
// needs the most.
func allTiers() []string { return []string{"T0", "T0h", "T0k", "T1", "T2"} }

// Tiers returns the tier of each behaviour.
func Tiers() (map[string]string, error) {
	list, err := scenarios.Behaviours()
	out := make(map[string]string, len(list))
	for _, behaviour := range list {
		out[behaviour.ID] = behaviour.Tier
	}
	return out, err
}

// Labels returns labels for a scenario: its area, its level, the highest tier of its
// behaviours if it is known, and the IDs of the behaviours.
func (p *Plan) Labels(s scenario.Scenario) []string {
	var out []string
	if s.Area != "" {
		out = append(out, s.Area)
	}
	out = append(out, string(s.Spec.Level))
	highest := -1
	for _, id := range s.Spec.Behaviours {
		highest = max(highest, slices.Index(allTiers(), p.Tiers[id]))
	}
	if highest >= 0 {
		out = append(out, allTiers()[highest])
	}
	return append(out, s.Spec.Behaviours...)
}
