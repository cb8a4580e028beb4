package engine_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// A failure has the positions of expressions and objects in the files of the user, the warnings of the type
// check, and the names that the user wrote.
func TestWhatFailuresSay(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/says/says.yaml", "testdata/says/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	install, err := shipped.Load("testdata/says/installed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios, Install: install,
		Provider: providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var text, document strings.Builder
	for _, outcome := range got.Outcomes {
		if outcome.Verdict != framework.Fail {
			t.Errorf("%s: got %s (%s), want fail", outcome.Name, outcome.Verdict, outcome.Reason)
		}
		text.WriteString(report.FailureText(outcome) + "\n")
	}
	golden.Compare(t, filepath.Join("testdata", "says", "says.golden"), text.String())
	if err := report.WriteJSON(&document, got); err != nil {
		t.Fatal(err)
	}
	if made := regexp.MustCompile(`at-[a-z2-7]{10}\S*`).FindString(document.String()); made != "" {
		t.Errorf("the report has the name %s, which nobody wrote:\n%s", made, document.String())
	}
}
