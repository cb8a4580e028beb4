package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// tierTable has one line a tier: its name, and the IDs of the behaviours that it
// is the lowest tier to show.
//
//go:embed tiers.txt
var tierTable string

// allTiers are the tiers, from the least that a behaviour takes to show to the most.
func allTiers() []string { return []string{"T0", "T0h", "T0k", "T1", "T2"} }

// tiers returns the tier of each behaviour.
func tiers() (map[string]string, error) {
	out := map[string]string{}
	for i, line := range strings.Split(tierTable, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if !slices.Contains(allTiers(), fields[0]) {
			return nil, fmt.Errorf("read tiers.txt: line %d: tier %q, want one of %q", i+1, fields[0], allTiers())
		}
		for _, id := range fields[1:] {
			if other, twice := out[id]; twice {
				return nil, fmt.Errorf("read tiers.txt: line %d: %s again, it is of %s", i+1, id, other)
			}
			out[id] = fields[0]
		}
	}
	return out, nil
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
