// Package policymutants finds which changes of policies the cases of a PolicyTest do not notice. The cases run again with
// mutants: copies of the policies and bindings with one change each. So an API server needs no changes, and its own decision is what
// counts. For survivors it looks for a case that notices them.
package policymutants

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// mutant is one change of a policy or binding.
type mutant struct {
	// index is that of the manifest in Spec.Given, and field what is changed, at a position in its text.
	index    int
	field    string
	at       [2]int
	old, new string
	// expression is the expression that is changed or dropped, and part the part of it that is changed. Both are "" if there is none.
	expression, part string
	manifest         map[string]any
}

// test is a PolicyTest: all scenarios that the loader made of it, which have the same policies.
type test struct{ scenarios []scenario.Scenario }

// testsOf returns the PolicyTests among scenarios.
func testsOf(all []scenario.Scenario) []*test {
	var tests []*test
	for _, s := range all {
		if !s.IsPolicyTest() {
			continue
		}
		same := func(t *test) bool {
			first := t.scenarios[0]
			return first.Metadata.Name == s.Metadata.Name && first.File == s.File && first.Line == s.Line
		}
		if at := slices.IndexFunc(tests, same); at >= 0 {
			tests[at].scenarios = append(tests[at].scenarios, s)
			continue
		}
		tests = append(tests, &test{scenarios: []scenario.Scenario{s}})
	}
	return tests
}

// MutateOptions say which mutants run.
type MutateOptions struct {
	// Most is the number of mutants of each PolicyTest.
	Most int
	// Before is the report of the cases with the policies as they are. Only cases that passed can notice a change.
	Before report.Report
}

// Mutate runs the cases of the PolicyTests among the scenarios of options with mutants of their policies, all at the same
// time, and returns those that no case notices. Beside the mutants of a test, its cases also run with the unchanged policies: if one
// does not pass there, nothing is known about the mutants. If the search for cases that notice survivors fails, the mutants are
// returned with the error.
func Mutate(ctx context.Context, options engine.Options, which MutateOptions) ([]report.Mutants, error) {
	passed := map[string]bool{}
	for _, outcome := range which.Before.Outcomes {
		passed[outcome.Name] = outcome.Verdict == framework.Pass
	}
	tests := testsOf(options.Scenarios)
	// runs are the mutants that run, by the names of the copies of the cases.
	runs := map[string]*mutantRun{}
	var order []*mutantRun
	var scenarios []scenario.Scenario
	all := make([]report.Mutants, len(tests))
	for i, t := range tests {
		possible := mutantsOf(t.scenarios[0])
		all[i] = report.Mutants{Name: t.scenarios[0].Metadata.Name, Possible: len(possible)}
		t.scenarios = scenario.Keep(t.scenarios, func(s scenario.Scenario) bool { return passed[s.Metadata.Name] })
		if len(t.scenarios) == 0 {
			all[i].Reason = "no case passes with the policies as they are"
			continue
		}
		control := &mutantRun{mutant: mutant{index: -1}, test: t, into: &all[i]}
		for _, each := range append([]mutant{control.mutant}, choose(possible, which.Most)...) {
			run := control
			if each.index >= 0 {
				run = &mutantRun{mutant: each, test: t, into: &all[i], control: control}
				order = append(order, run)
			}
			scenarios = append(scenarios, run.copies(len(runs), runs)...)
		}
	}
	if len(order) == 0 {
		return all, nil
	}
	result, err := engine.Run(ctx, quietly(options, scenarios, fmt.Sprintf("running %d mutants of the policies", len(order))))
	if err != nil {
		return nil, fmt.Errorf("run mutants: %w", err)
	}
	for _, outcome := range result.Outcomes {
		if run := runs[outcome.Name]; run != nil {
			run.note(outcome)
		}
	}
	var survivors []*mutantRun
	for _, run := range order {
		if run.count() {
			survivors = append(survivors, run)
		}
	}
	err = findCases(ctx, options, survivors)
	for _, m := range all {
		slices.SortStableFunc(m.Survivors, func(a, b report.Survivor) int {
			return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
		})
	}
	return all, err
}

// choose returns the mutants that run, at equal distances in their order.
func choose(all []mutant, most int) []mutant {
	if len(all) <= most {
		return all
	}
	chosen := make([]mutant, most)
	for i := range chosen {
		chosen[i] = all[i*len(all)/most]
	}
	return chosen
}

// mutantRun is the run of the cases with one mutant, or with the unchanged policies.
type mutantRun struct {
	mutant
	test *test
	into *report.Mutants
	// control is the run with the unchanged policies, or nil if it is this.
	control *mutantRun
	// left is the number of cases without an outcome.
	left int
	// noticed is the first case that fails, or "". Refused is true if the API server does not accept the mutant. Unjudged is why a
	// case says nothing, or "".
	noticed  string
	refused  bool
	unjudged string
	// survivor is its index in into.Survivors, if it is one.
	survivor int
}

// copies returns copies of the scenarios of the test with the mutant, and notes the names of their cases.
func (r *mutantRun) copies(number int, runs map[string]*mutantRun) []scenario.Scenario {
	var all []scenario.Scenario
	for _, s := range r.test.scenarios {
		prefix := fmt.Sprintf("mutant-%d.", number)
		s.Metadata.Name = prefix + s.Metadata.Name
		s.Spec.Given, s.Cases = slices.Clone(s.Spec.Given), slices.Clone(s.Cases)
		if r.control != nil {
			s.Spec.Given[r.index] = r.manifest
		}
		for i := range s.Cases {
			s.Cases[i].Name = prefix + s.Cases[i].Name
			runs[s.Cases[i].Name] = r
			r.left++
		}
		all = append(all, s)
	}
	return all
}

func (r *mutantRun) note(outcome report.Outcome) {
	r.left--
	switch {
	case outcome.Verdict == framework.Pass:
	case outcome.Verdict == framework.Fail:
		r.noticed = cmp.Or(r.noticed, outcome.Name)
	case outcome.Mistake:
		r.refused = true
	default:
		r.unjudged = cmp.Or(r.unjudged, report.FirstLine(outcome.Reason), string(outcome.Verdict))
	}
}

// quietly returns the options of a run of copies, whose progress is one line.
func quietly(options engine.Options, scenarios []scenario.Scenario, stage string) engine.Options {
	if options.Progress != nil {
		options.Progress.Stage(stage)
	}
	options.Scenarios, options.Skip, options.KnownFailing, options.Rerun, options.Progress = scenarios, nil, nil, nil, nil
	return options
}

// count counts the mutant, and reports whether it is a survivor.
func (r *mutantRun) count() bool {
	changed := "" // what the unchanged policies do now
	switch c := r.control; {
	case c.noticed != "":
		_, name, _ := strings.Cut(c.noticed, ".")
		changed = "with the unchanged policies, " + name + " passed before and failed beside the mutants"
	case c.unjudged != "" || c.refused || c.left > 0:
		changed = "with the unchanged policies: " + cmp.Or(c.unjudged, "a case could not be judged")
	}
	switch reason := cmp.Or(changed, r.unjudged); {
	case changed == "" && r.noticed != "":
		r.into.Noticed++
	case changed == "" && r.refused:
		r.into.Refused++
	case reason != "" || r.left > 0:
		r.into.Unjudged++
		r.into.Reason = cmp.Or(r.into.Reason, reason, "a case has no outcome")
	default:
		problem := r.test.scenarios[0].ErrorIn(fmt.Sprintf("given[%d]", r.index), r.field, r.at, "")
		r.survivor = len(r.into.Survivors)
		r.into.Survivors = append(r.into.Survivors, report.Survivor{
			File: problem.File, Line: problem.Line, Column: problem.Column, Field: r.field, Old: r.old, New: r.new,
		})
		return true
	}
	return false
}
