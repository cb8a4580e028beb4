package engine

import (
	"fmt"
	"reflect"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Verify returns what is wrong with a report by the catalogue: outcomes that are not of its requirements, or have
// another level or sentence, and a claim that does not follow from the outcomes.
func Verify(r report.Report, catalogue []scenario.Scenario) ([]string, error) {
	known := map[string]scenario.Scenario{}
	for _, s := range scenario.Cases(catalogue) {
		known[s.Metadata.Name] = s
	}
	var problems []string
	for i, outcome := range r.Outcomes {
		s, exists := known[outcome.Name]
		switch {
		case !exists:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: the catalogue of this version has no requirement %q", i, outcome.Name))
		case outcome.Level != s.Spec.Level:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: %s has the level %s, want %s", i, outcome.Name, outcome.Level, s.Spec.Level))
		case outcome.Requirement != s.Spec.Requirement:
			problems = append(problems, fmt.Sprintf("outcomes[%d]: %s is not about the same requirement: %q, want %q", i, outcome.Name, outcome.Requirement, s.Spec.Requirement))
		}
	}
	if r.Claim == nil {
		return problems, nil
	}
	claimed, err := ProfileNamed(r.Claim.Profile)
	if err != nil {
		return append(problems, fmt.Sprintf("claim: %v", err)), nil
	}
	want, err := claimed.Judge(r, catalogue)
	if err == nil && !reflect.DeepEqual(want, *r.Claim) {
		problems = append(problems, fmt.Sprintf("claim: it says %q; by the outcomes it is %q", r.Claim, want))
	}
	return problems, err
}
