package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/scenarios"
)

// areaCoverage says how many behaviours of one area of behaviours.tsv the catalogue tests.
// Its keys are frozen.
type areaCoverage struct {
	Area string `json:"area"`
	// Behaviours is the number of behaviours of the area, the sum of the numbers below.
	Behaviours int `json:"behaviours"`
	// Covered is the number of behaviours with a scenario.
	Covered int `json:"covered"`
	// Reasoned is the number of behaviours with a reason in uncovered.yaml why no scenario can test
	// them.
	Reasoned int `json:"reasoned"`
	// Missing are the IDs of the MUST and SHOULD behaviours of an API server that have neither a
	// scenario nor a reason.
	Missing []string `json:"missing,omitempty"`
	// Other is the number of behaviours with neither a scenario nor a reason that are MAY, or need
	// other components than an API server.
	Other int `json:"other"`
}

// coverageList is the output of list --coverage -o json.
type coverageList struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []areaCoverage `json:"items"`
}

// coverage returns the coverage of some areas, or of all, in the order of behaviours.tsv.
func coverage(all []scenario.Scenario, areas []string) ([]areaCoverage, error) {
	behaviours, err := scenarios.Behaviours()
	if err != nil {
		return nil, err
	}
	reasons, err := scenarios.Uncovered()
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, s := range all {
		for _, id := range s.Spec.Behaviours {
			shown[id] = true
		}
	}
	var out []areaCoverage
	var known []string
	for _, behaviour := range behaviours {
		if !slices.Contains(known, behaviour.Area()) {
			known = append(known, behaviour.Area())
		}
		if len(areas) > 0 && !slices.Contains(areas, behaviour.Area()) {
			continue
		}
		at := slices.IndexFunc(out, func(of areaCoverage) bool { return of.Area == behaviour.Area() })
		if at < 0 {
			at, out = len(out), append(out, areaCoverage{Area: behaviour.Area()})
		}
		out[at].add(behaviour, shown[behaviour.ID], reasons[behaviour.ID] != "")
	}
	for _, area := range areas {
		if !slices.Contains(known, area) {
			return nil, exit.Usagef("no area of behaviours is named %q%s", area, suggest.DidYouMean(area, known))
		}
	}
	return out, nil
}

// add counts one behaviour.
func (c *areaCoverage) add(behaviour scenarios.Behaviour, shown, reasoned bool) {
	c.Behaviours++
	switch {
	case shown:
		c.Covered++
	case reasoned:
		c.Reasoned++
	case behaviour.Level == framework.May || behaviour.Tier == "T2":
		c.Other++
	default:
		c.Missing = append(c.Missing, behaviour.ID)
	}
}

// writeCoverage writes a table, and the IDs of the missing behaviours.
func writeCoverage(w io.Writer, all []areaCoverage) error {
	total := areaCoverage{Area: "total"}
	err := writeTable(w, func(row func(cells ...string)) {
		row("AREA", "BEHAVIOURS", "COVERED", "REASONED", "MISSING", "OTHER")
		line := func(c areaCoverage) {
			row(c.Area, strconv.Itoa(c.Behaviours), strconv.Itoa(c.Covered), strconv.Itoa(c.Reasoned), strconv.Itoa(len(c.Missing)), strconv.Itoa(c.Other))
		}
		for _, c := range all {
			line(c)
			total.Behaviours, total.Covered, total.Reasoned, total.Other = total.Behaviours+c.Behaviours, total.Covered+c.Covered, total.Reasoned+c.Reasoned, total.Other+c.Other
			total.Missing = append(total.Missing, c.Missing...)
		}
		line(total)
	})
	if err != nil || len(total.Missing) == 0 {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nmissing: %s\n", strings.Join(total.Missing, " ")); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}
