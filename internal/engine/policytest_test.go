package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/load"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// Each case of testdata/policytest has the verdict that its name begins with.
func TestPolicyTests(t *testing.T) {
	scenarios, err := load.Paths("testdata/policytest/pass.yaml", "testdata/policytest/fail.yaml", "testdata/policytest/error.yaml", "testdata/policytest/users.yaml", "testdata/policytest/configurations.yaml", "testdata/policytest/accounts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.Run(t.Context(), engine.Options{
		Scenarios: scenarios,
		Provider:  providers.NewEnvtest(providers.EnvtestOptions{Progress: func(line string) { t.Log(line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Outcomes) < 51 {
		t.Errorf("got %d outcomes, want at least 51", len(got.Outcomes))
	}
	reasons := map[string]string{}
	for _, outcome := range got.Outcomes {
		want, _, _ := strings.Cut(outcome.Name, ".")
		if string(outcome.Verdict) != want {
			t.Errorf("%s: got %s (%s), want %s", outcome.Name, outcome.Verdict, outcome.Reason, want)
		}
		if outcome.Verdict == framework.Errored {
			reasons[outcome.Name], _, _ = strings.Cut(outcome.Reason, "\n")
			if !outcome.Mistake {
				t.Errorf("%s: not reported as a mistake in the files", outcome.Name)
			}
		}
	}
	const file = "testdata/policytest/error.yaml"
	want := map[string]string{
		"error.a":        file + ":11:56: ValidatingAdmissionPolicy broken: spec.validations[0].expression: Syntax error: token recognition error at: '='",
		"error.b":        "setup: this case uses the same policies as error.a: the reason is there",
		"error.object.a": file + `:21:78: ConfigMap a: unknown field "dta"; expected a field of the API server's v1 ConfigMap; did you mean "data"?`,
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got)\n%s", diff)
	}
}
