package policycoverage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/policycoverage"
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

// TestMeasure: what the cases never decide is reported, with its position, what cannot be observed is unknown, and of policies
// whose parts are all decided nothing is reported.
func TestMeasure(t *testing.T) {
	got, err := policycoverage.Measure(t.Context(), load(t, "gaps.yaml", "mutating.yaml", "unknown.yaml", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, c := range got {
		fmt.Fprintf(&text, "%s: %d cases, %d of %d decided, %d unknown\n", c.Name, c.Cases, c.Decided, c.Parts, c.Unknown)
		for _, u := range c.Undecided {
			fmt.Fprintf(&text, "  %d:%d %s: %s%s (%s)\n", u.Line, u.Column, u.Field, u.Never, u.Unknown, u.Hint)
		}
		if strings.HasPrefix(c.Name, "full") && (len(c.Undecided) > 0 || c.Decided != c.Parts) {
			t.Errorf("%s: got %d of %d decided, want all", c.Name, c.Decided, c.Parts)
		}
	}
	golden.Compare(t, "testdata/coverage.txt", text.String())
}

// TestMutate: few cases let mutants survive, and others notice each one. If a case does not pass with the unchanged policies, or
// none does, nothing is known. What the API server refuses is not counted.
func TestMutate(t *testing.T) {
	options := load(t, "mutants.yaml")
	var before report.Report
	for _, c := range scenario.Cases(options.Scenarios) {
		if !strings.HasPrefix(c.Metadata.Name, "none.") {
			before.Outcomes = append(before.Outcomes, report.Outcome{Name: c.Metadata.Name, Verdict: framework.Pass})
		}
	}
	got, err := policycoverage.Mutate(t.Context(), options, policycoverage.MutateOptions{Most: 100, Before: before})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range got {
		fmt.Fprintf(&text, "%s: %d possible, %d noticed, %d refused, %d not judged %s\n", m.Name, m.Possible, m.Noticed, m.Refused, m.Unjudged, m.Reason)
		for _, s := range m.Survivors {
			fmt.Fprintf(&text, "  %d:%d %s: %s -> %s\n", s.Line, s.Column, s.Field, s.Old, s.New)
		}
		if m.Name == "strong" && m.Noticed+m.Refused != m.Possible {
			t.Errorf("strong: got %d of %d noticed, want all", m.Noticed, m.Possible)
		}
	}
	golden.Compare(t, "testdata/mutants.txt", text.String())
}
