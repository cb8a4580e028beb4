package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// The exit codes that depend on the outcomes. Package exit of the command has the other ones.
const (
	ExitPass         = 0
	ExitFail         = 1
	ExitUsage        = 2
	ExitNothing      = 3
	ExitError        = 4
	ExitInconclusive = 5
)

// Summary has the number of outcomes for each verdict. Total is their sum.
type Summary struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	Unsupported  int `json:"unsupported"`
	Skipped      int `json:"skipped"`
	Inconclusive int `json:"inconclusive"`
	Error        int `json:"error"`
	Total        int `json:"total"`
}

// Count counts outcomes. An outcome without a known verdict counts as an error.
func Count(outcomes []Outcome) Summary {
	var s Summary
	for _, outcome := range outcomes {
		*s.of(outcome.Verdict)++
		s.Total++
	}
	return s
}

// of returns the number for a verdict.
func (s *Summary) of(verdict framework.Verdict) *int {
	switch verdict {
	case framework.Pass:
		return &s.Pass
	case framework.Fail:
		return &s.Fail
	case framework.Unsupported:
		return &s.Unsupported
	case framework.Skipped:
		return &s.Skipped
	case framework.Inconclusive:
		return &s.Inconclusive
	default:
		return &s.Error
	}
}

// String lists the verdicts that occur, "3 pass, 1 fail", or returns "none".
func (s Summary) String() string {
	var parts []string
	for _, verdict := range framework.Verdicts() {
		if count := *s.of(verdict); count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, verdict))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// ExitCode returns the exit code for the outcomes. The first condition that is true decides:
//
// ExitFail: a MUST failed, or FailOnUnsupported is set and a scenario of any level is unsupported.
//
// ExitError: a MUST ended in an error whose cause is not a mistake in its files.
//
// ExitUsage: a scenario of any level has a mistake in its files.
//
// ExitInconclusive: a MUST was inconclusive, or the version of the server is not plausible.
//
// ExitNothing: no scenario of any level passed. A known failure counts as passed.
//
// ExitPass: otherwise.
//
// If strict is true, SHOULD counts as MUST. An unknown level always counts as MUST.
func (r Report) ExitCode(strict bool) int {
	code := ExitNothing
	if r.Target.implausible() != "" {
		code = ExitInconclusive
	}
	for _, outcome := range r.Outcomes {
		if code == ExitNothing && (outcome.Verdict == framework.Pass || outcome.KnownFailing != "") {
			code = ExitPass
		}
		if r.FailOnUnsupported && outcome.Verdict == framework.Unsupported {
			return ExitFail
		}
		if outcome.Verdict == framework.Errored && outcome.Mistake {
			if code != ExitError {
				code = ExitUsage
			}
			continue
		}
		if outcome.KnownFailing != "" || outcome.Level == framework.May || (outcome.Level == framework.Should && !strict) {
			continue
		}
		switch outcome.Verdict {
		case framework.Pass, framework.Unsupported, framework.Skipped:
		case framework.Fail:
			return ExitFail
		case framework.Inconclusive:
			if code != ExitError && code != ExitUsage {
				code = ExitInconclusive
			}
		default:
			code = ExitError
		}
	}
	return code
}

// Ordered returns a copy of the Report that is counted, in order, and has a known verdict in every
// outcome. The writers call it.
func (r Report) Ordered() Report {
	r.APIVersion, r.Kind = APIVersion, Kind
	r.Outcomes = append([]Outcome{}, r.Outcomes...)
	for i, outcome := range r.Outcomes {
		if !slices.Contains(framework.Verdicts(), outcome.Verdict) {
			r.Outcomes[i].Verdict = framework.Errored
			r.Outcomes[i].Reason = strings.TrimSpace(fmt.Sprintf("unknown verdict (%q) %s", outcome.Verdict, outcome.Reason))
		}
	}
	slices.SortStableFunc(r.Outcomes, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Area, b.Area))
	})
	r.Summary = Count(r.Outcomes)
	return r
}

// area is the outcomes of one area.
type area struct {
	name     string
	outcomes []Outcome
}

// areas groups outcomes by area, in the order of the names.
func areas(outcomes []Outcome) []area {
	var all []area
	byArea := slices.Clone(outcomes)
	slices.SortStableFunc(byArea, func(a, b Outcome) int { return cmp.Compare(a.Area, b.Area) })
	for _, outcome := range byArea {
		if len(all) == 0 || all[len(all)-1].name != outcome.Area {
			all = append(all, area{name: outcome.Area})
		}
		last := &all[len(all)-1]
		last.outcomes = append(last.outcomes, outcome)
	}
	return all
}
