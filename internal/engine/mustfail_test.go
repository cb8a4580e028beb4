package engine_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
)

// varying is what differs from run to run in what a failure prints, and what
// stands for it in the golden files.
func varying() []replacement {
	return []replacement{
		{regexp.MustCompile(`at-[a-z2-7]{10}-\d{5}`), "ID"},
		{regexp.MustCompile(` *\+?\d+(\.\d+)?(ns|µs|ms|s)\b`), " TIME"},
		{regexp.MustCompile(`(third|fourth)\.example\.com( \(call|\)| +CREATE)`), "ANY$2"},
		{regexp.MustCompile(`index_\d+`), "index_N"},
	}
}

type replacement struct {
	pattern *regexp.Regexp
	stands  string
}

// Each kind of expectation has a scenario that a sound API server fails, and a
// golden file of what that prints.
func TestMustFail(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/mustfail")
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
		Patience:  time.Second,
		Rerun:     func(s scenario.Scenario) string { return "admissiontest run " + s.Metadata.Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]framework.Verdict{
		"mustfail.wait": framework.Inconclusive, "mustfail.placeholder": framework.Errored, "mustfail.unauthorized": framework.Inconclusive,
		"mustfail.control": framework.Inconclusive,
	}
	for _, outcome := range got.Outcomes {
		t.Run(outcome.Name, func(t *testing.T) {
			verdict := want[outcome.Name]
			switch {
			case strings.HasPrefix(outcome.Name, "mustfail.vacuous-"):
				verdict = framework.Errored
			case verdict == "":
				verdict = framework.Fail
			}
			if outcome.Verdict != verdict {
				t.Errorf("verdict: got %s (%s), want %s", outcome.Verdict, outcome.Reason, verdict)
			}
			compare(t, outcome)
		})
	}
	golden.Whole(t, filepath.Join("testdata", "mustfail", "*.golden"))
	if files, err := filepath.Glob(filepath.Join("testdata", "mustfail", "*.yaml")); err != nil || len(files) == 0 || len(got.Outcomes) < len(files) || len(got.Outcomes) != len(scenarios) {
		t.Errorf("got %d outcomes of %d scenarios in %d files; want one of each scenario, and a scenario in each file", len(got.Outcomes), len(scenarios), len(files))
	}
}

func compare(t *testing.T, outcome report.Outcome) {
	t.Helper()
	single := report.New(framework.TargetInfo{Kind: "envtest", ServerVersion: "v1.36.3"})
	single.Outcomes = []report.Outcome{outcome}
	var text strings.Builder
	if err := report.WriteConsole(&text, single, report.ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	printed := text.String()
	for _, v := range varying() {
		printed = v.pattern.ReplaceAllString(printed, v.stands)
	}
	file := filepath.Join("testdata", "mustfail", strings.TrimPrefix(outcome.Name, "mustfail.")+".golden")
	golden.Compare(t, file, printed)
}
