package conformance

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/suites/conformance/internal/plan"
)

// Run runs the scenarios that Options and -run select, and reports each outcome as a subtest. If an
// option is wrong or a scenario cannot be read, Run ends the test before it starts anything.
func Run(t *testing.T, options Options) {
	t.Helper()
	run(t, options, nil)
}

func run(t *testing.T, options Options, provider target.Provider) {
	t.Helper()
	suite, err := options.Plan(provider, func(line string) { t.Log(redact.Escaped(line)) })
	if err != nil {
		t.Fatalf("conformance: %s", redact.Escaped(err.Error()))
	}
	chosen := selected(t.Name(), suite.Scenarios, flagValue("test.run"))
	if len(chosen) == 0 {
		t.Fatalf("conformance: -run %q selects none of %d scenarios", flagValue("test.run"), len(scenario.Cases(suite.Scenarios)))
	}
	result, err := suite.Run(t.Context(), chosen, progress{t}, func(s scenario.Scenario) string {
		return fmt.Sprintf("go test -run '^%s$/^%s$/^%s$'", regexp.QuoteMeta(t.Name()), regexp.QuoteMeta(s.Area), regexp.QuoteMeta(slug(s)))
	})
	for _, area := range plan.Areas(chosen) {
		t.Run(area.Name, func(t *testing.T) {
			for _, s := range area.Scenarios {
				t.Run(slug(s), func(t *testing.T) { reportOutcome(t, suite, plan.Outcome(result, s)) })
			}
		})
	}
	if err != nil {
		t.Errorf("conformance: the run is incomplete: %s", redact.Escaped(err.Error()))
	}
	if reason := suite.NotGreen(result); reason != "" {
		t.Errorf("conformance: %s", reason)
	}
}

// reportOutcome reports one outcome.
func reportOutcome(t *testing.T, suite *plan.Plan, outcome report.Outcome) {
	t.Helper()
	switch result, text := suite.Judge(outcome); result {
	case plan.Failed:
		t.Error(text)
	case plan.Skipped:
		t.Skip(text)
	}
}

// slug returns the name of a scenario without its area.
func slug(s scenario.Scenario) string { return strings.TrimPrefix(s.Metadata.Name, s.Area+".") }

// flagValue returns the value of a flag of go test, or "".
func flagValue(name string) string {
	if found := flag.Lookup(name); found != nil {
		return found.Value.String()
	}
	return ""
}

// selected returns the scenarios whose subtests -run can select. It may return more, if
// the pattern is not simple: package testing decides in the end.
func selected(test string, all []scenario.Scenario, pattern string) []scenario.Scenario {
	depth := strings.Count(test, "/") + 1
	parts := strings.Split(pattern, "/")
	if len(parts) <= depth || strings.ContainsAny(pattern, "|[(") {
		return all
	}
	return scenario.Keep(all, func(s scenario.Scenario) bool {
		names := []string{s.Area, slug(s)}
		for i, part := range parts[depth:min(len(parts), depth+len(names))] {
			if expression, err := regexp.Compile(part); err == nil && !expression.MatchString(names[i]) {
				return false
			}
		}
		return true
	})
}

// progress logs the stages of a run, which go test prints with -v.
type progress struct{ t *testing.T }

// Stage logs one line.
func (p progress) Stage(text string) { p.t.Log(redact.Escaped(text)) }

// Done does nothing: the subtest reports the outcome.
func (progress) Done(report.Outcome) {}
