package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// Each case of testdata/policytest has the verdict that its name begins with.
func TestPolicyTests(t *testing.T) {
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/policytest/pass.yaml", "testdata/policytest/fail.yaml", "testdata/policytest/error.yaml", "testdata/policytest/users.yaml", "testdata/policytest/configurations.yaml", "testdata/policytest/accounts.yaml", "testdata/policytest/subresources.yaml")
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
	if len(got.Outcomes) < 72 {
		t.Errorf("got %d outcomes, want at least 72", len(got.Outcomes))
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
		"error.subresources.debug-of-the-pod-itself":  "testdata/policytest/subresources.yaml:44:108: spec.ephemeralContainers: the API server refuses this field in an update of the Pod itself; use subresource: ephemeralcontainers",
		"error.subresources.image-by-status":          "testdata/policytest/subresources.yaml:48:62: spec: the API server ignores this field in an update, so the policies would not meet it; write it in old too, or leave out subresource",
		"error.subresources.status-by-the-pod-itself": "testdata/policytest/subresources.yaml:51:109: status: the API server ignores this field in an update, so the policies would not meet it; write it in old too, or use subresource: status",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got)\n%s", diff)
	}
}
