package engine

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// NewestMinors are the newest minor versions of Kubernetes that the catalogue supports. Only for
// these an API server conforms.
func NewestMinors() []string { return []string{"1.37", "1.36"} }

// Judge judges the claim of an API server to a profile, by the outcomes of a report. docs/conformance.md has the
// rules.
func (p Profile) Judge(r report.Report, catalogue []scenario.Scenario) (report.Claim, error) {
	claim := report.Claim{Profile: p.Name, Verdict: report.Conformant}
	if reason := report.ImplausibleVersion(r.Target.ServerVersion); reason != "" {
		claim.Verdict, claim.Missing = report.Partial, []string{reason}
		return claim, nil
	}
	server, err := version.ParseGeneric(r.Target.ServerVersion)
	if err != nil {
		return claim, err
	}
	claim.Kubernetes = fmt.Sprintf("%d.%d", server.Major(), server.Minor())
	required, err := p.Of(catalogue)
	if err != nil {
		return claim, err
	}
	outcomes := map[string]report.Outcome{}
	for _, outcome := range r.Outcomes {
		outcomes[outcome.Name] = outcome
	}
	missing := map[string]int{}
	hasMust := slices.ContainsFunc(required, func(s scenario.Scenario) bool { return s.Spec.Level == framework.Must })
	for _, s := range scenario.Cases(required) {
		if OtherMinor(s, r.Target.ServerVersion) != "" {
			continue
		}
		claim.Requirements++
		counts := s.Spec.Level == framework.Must || !hasMust
		switch outcome, ran := outcomes[s.Metadata.Name]; {
		case !ran || outcome.NotReached:
			missing["not run"]++
		case outcome.Verdict == framework.Pass:
			claim.Passed++
		case outcome.Verdict == framework.Fail && counts:
			claim.Failed = append(claim.Failed, s.Metadata.Name)
		case outcome.Verdict == framework.Fail, outcome.Verdict == framework.Unsupported && !counts:
			claim.NotMet = append(claim.NotMet, s.Metadata.Name)
		default:
			missing[string(outcome.Verdict)]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		claim.Missing = append(claim.Missing, fmt.Sprintf("%d %s", missing[why], why))
	}
	if claim.Passed == 0 {
		claim.Missing = append(claim.Missing, "nothing passed")
	}
	if !slices.Contains(NewestMinors(), claim.Kubernetes) {
		claim.Missing = append(claim.Missing, fmt.Sprintf("older than Kubernetes %s", NewestMinors()[1]))
	}
	switch {
	case len(claim.Failed) > 0:
		claim.Verdict = report.NotConformant
	case len(claim.Missing) > 0:
		claim.Verdict = report.Partial
	}
	return claim, nil
}
