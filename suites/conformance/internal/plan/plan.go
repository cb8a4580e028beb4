// Package plan runs the scenarios that the options of the conformance suite select, and judges their outcomes. The
// packages suites/conformance and suites/conformance/ginkgo report them to their test frameworks.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Plan is the selected scenarios and how to run them.
type Plan struct {
	// Scenarios are the selected scenarios, in the order of their names.
	Scenarios []scenario.Scenario
	// Engine has the options of the engine, but not Scenarios, Progress and Rerun, which Run sets.
	Engine engine.Options
	// Strict, FailOnUnsupported and Dir are as in conformance.Report.
	Strict, FailOnUnsupported bool
	Dir                       string
	// Implementation is that of conformance.Subject.
	Implementation framework.Implementation
	// Tiers has the tiers of behaviours: see Tiers.
	Tiers map[string]string
}

// Progress receives what happens in a run.
type Progress = engine.Progress

// Run runs the given scenarios and writes the report files. The error is why not all of
// them were run, or why the files could not be written. Rerun returns the command that
// runs one scenario again.
func (p *Plan) Run(ctx context.Context, chosen []scenario.Scenario, progress Progress, rerun func(scenario.Scenario) string) (report.Report, error) {
	options := p.Engine
	options.Scenarios, options.Progress, options.Rerun = chosen, progress, rerun
	result, err := engine.Run(ctx, options)
	result.FailOnUnsupported, result.Strict = p.FailOnUnsupported, p.Strict
	if !p.Implementation.IsZero() {
		result.Implementation = &p.Implementation
	}
	if p.Dir != "" {
		err = errors.Join(err, report.SaveDir(p.Dir, result))
	}
	return result, err
}

// Result is how a test reports an outcome.
type Result int

// The results.
const (
	Passed Result = iota
	Failed
	Skipped
)

// Judge returns how a test reports the outcome of a scenario, and the text.
func (p *Plan) Judge(outcome report.Outcome) (Result, string) {
	result, text := p.judge(outcome)
	return result, redact.Escaped(text)
}

func (p *Plan) judge(outcome report.Outcome) (Result, string) {
	if p.FailOnUnsupported && outcome.Verdict == framework.Unsupported {
		return Failed, report.FailureText(outcome)
	}
	switch outcome.Verdict {
	case framework.Pass:
		return Passed, ""
	case framework.Unsupported, framework.Skipped:
		return Skipped, fmt.Sprintf("%s: %s", outcome.Verdict, outcome.Reason)
	}
	text := report.FailureText(outcome)
	switch {
	case outcome.KnownFailing != "":
		return Skipped, "known to fail: " + outcome.KnownFailing + "\n" + text
	case outcome.Mistake: // of any level, as an error of the loader
		return Failed, text
	case outcome.Level == framework.May, outcome.Level == framework.Should && !p.Strict:
		return Skipped, fmt.Sprintf("%s, which does not count for a %s\n%s", outcome.Verdict, outcome.Level, text)
	default:
		return Failed, text
	}
}

// NotGreen returns why a suite must not succeed although no scenario fails it, or "":
// nothing passed. One unsupported or skipped scenario that the test framework selected
// from several is only skipped.
func (p *Plan) NotGreen(r report.Report) string {
	if len(r.Outcomes) == 1 && len(scenario.Cases(p.Scenarios)) > 1 {
		return ""
	}
	return redact.Escaped(r.WhyNothing(p.Strict))
}

// Outcome returns the outcome of a scenario. It is an error outcome if the report has
// none.
func Outcome(r report.Report, s scenario.Scenario) report.Outcome {
	for _, outcome := range r.Outcomes {
		if outcome.Name == s.Metadata.Name {
			return outcome
		}
	}
	return report.Outcome{
		Name: s.Metadata.Name, Area: s.Area, Level: s.Spec.Level, Verdict: framework.Errored,
		Requirement: s.Spec.Requirement, Source: s.Spec.Source, File: s.File,
		Reason: "the engine did not run the scenario, although the test framework selected it: this is a bug of admissiontest",
	}
}

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

// Area has the scenarios of one area.
type Area struct {
	Name      string
	Scenarios []scenario.Scenario
}

// Areas groups scenarios and cases by area, in their order.
func Areas(all []scenario.Scenario) []Area {
	var out []Area
	for _, s := range scenario.Cases(all) {
		at := slices.IndexFunc(out, func(one Area) bool { return one.Name == s.Area })
		if at < 0 {
			at = len(out)
			out = append(out, Area{Name: s.Area})
		}
		out[at].Scenarios = append(out[at].Scenarios, s)
	}
	return out
}
