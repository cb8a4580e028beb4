package policymutants

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
)

// load returns the options of a run of the PolicyTests in files of testdata.
func load(t *testing.T, files ...string) engine.Options {
	t.Helper()
	for i := range files {
		files[i] = "testdata/" + files[i]
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{}, files...)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Options{Scenarios: scenarios, Provider: providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }})}
}

// TestMutantsOf: each kind of change is made, at its position.
func TestMutantsOf(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/changes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range mutantsOf(scenarios[0]) {
		at := scenarios[0].ErrorIn(fmt.Sprintf("given[%d]", m.index), m.field, m.at, "")
		fmt.Fprintf(&text, "%d:%d %s: %s -> %s\n", at.Line, at.Column, m.field, m.old, m.new)
	}
	golden.Compare(t, "testdata/changes.txt", text.String())
}

// TestMutate: few cases let mutants survive, and others notice each one. If a case does not pass with the unchanged policies, or
// none does, nothing is known. What the API server refuses is not counted.
func TestMutate(t *testing.T) {
	options := load(t, "mutants.yaml", "full.yaml")
	scenarios := slices.DeleteFunc(options.Scenarios, func(s scenario.Scenario) bool { return s.Metadata.Name == "full.open" })
	options.Scenarios = scenarios
	var before report.Report
	for _, c := range scenario.Cases(scenarios) {
		if !strings.HasPrefix(c.Metadata.Name, "none.") {
			before.Outcomes = append(before.Outcomes, report.Outcome{Name: c.Metadata.Name, Verdict: framework.Pass})
		}
	}
	all, err := Mutate(t.Context(), options, MutateOptions{Most: 100, Before: before})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range all {
		fmt.Fprintf(&text, "%s: %d possible, %d noticed, %d refused, %d not judged %s\n", m.Name, m.Possible, m.Noticed, m.Refused, m.Unjudged, m.Reason)
		for _, s := range m.Survivors {
			fmt.Fprintf(&text, "  %d:%d %s: %s -> %s\n%s", s.Line, s.Column, s.Field, s.Old, s.New, caseText(t, s))
		}
		if m.Name == "strong" && m.Noticed+m.Refused != m.Possible {
			t.Errorf("strong: got %d of %d noticed, want all", m.Noticed, m.Possible)
		}
	}
	golden.Compare(t, "testdata/mutants.txt", text.String())
}

// TestCount: a mutant is only noticed, or a survivor, if each case was judged and passes with the unchanged policies.
func TestCount(t *testing.T) {
	pass, fail := report.Outcome{Verdict: framework.Pass}, report.Outcome{Name: "mutant-1.a", Verdict: framework.Fail}
	unknown, refused := report.Outcome{Verdict: framework.Inconclusive}, report.Outcome{Verdict: framework.Errored, Mistake: true}
	for name, each := range map[string]struct {
		control, mutant []report.Outcome
		want            string
	}{
		"survivor":        {[]report.Outcome{pass, pass}, []report.Outcome{pass, pass}, "0 noticed, 0 refused, 0 not judged, 1 survived"},
		"noticed":         {[]report.Outcome{pass, pass}, []report.Outcome{unknown, fail}, "1 noticed, 0 refused, 0 not judged, 0 survived"},
		"refused":         {[]report.Outcome{pass, pass}, []report.Outcome{refused, refused}, "0 noticed, 1 refused, 0 not judged, 0 survived"},
		"unknown":         {[]report.Outcome{pass, pass}, []report.Outcome{unknown, pass}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
		"no outcome":      {[]report.Outcome{pass, pass}, []report.Outcome{pass}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
		"control fails":   {[]report.Outcome{pass, fail}, []report.Outcome{pass, fail}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
		"control unknown": {[]report.Outcome{pass, unknown}, []report.Outcome{pass, fail}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
		"control refused": {[]report.Outcome{refused, refused}, []report.Outcome{refused, refused}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
		"control missing": {[]report.Outcome{pass}, []report.Outcome{pass, fail}, "0 noticed, 0 refused, 1 not judged, 0 survived"},
	} {
		t.Run(name, func(t *testing.T) {
			var got report.Mutants
			control := &mutantRun{left: 2}
			run := &mutantRun{left: 2, control: control, into: &got, test: &test{scenarios: make([]scenario.Scenario, 1)}}
			for i, outcomes := range [][]report.Outcome{each.control, each.mutant} {
				for _, outcome := range outcomes {
					[]*mutantRun{control, run}[i].note(outcome)
				}
			}
			run.count()
			if text := fmt.Sprintf("%d noticed, %d refused, %d not judged, %d survived", got.Noticed, got.Refused, got.Unjudged, len(got.Survivors)); text != each.want {
				t.Errorf("got %s, want %s (%s)", text, each.want, got.Reason)
			}
		})
	}
}

// TestChoose: of more mutants than may run, some of each part of the policies run.
func TestChoose(t *testing.T) {
	for most, want := range map[int]string{20: "[0 1 2 3 4]", 5: "[0 1 2 3 4]", 3: "[0 1 3]", 1: "[0]"} {
		var got []int
		for _, m := range choose([]mutant{{index: 0}, {index: 1}, {index: 2}, {index: 3}, {index: 4}}, most) {
			got = append(got, m.index)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d: got %v; want %s", most, got, want)
		}
	}
}
