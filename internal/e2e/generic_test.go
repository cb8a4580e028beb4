package e2e

import (
	"regexp"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// judgedOnGeneric is the number of scenarios outside of scenarios/plugins that the generic control
// plane must be judged by. The others need kinds that it does not serve.
const judgedOnGeneric = 296

// leftOutOnGeneric are the scenarios that cannot run there or whose verdict varies, with the reason.
func leftOutOnGeneric() map[string]string {
	return map[string]string{
		"createupdate.create.while-its-definition-terminates": "the server can remove a CustomResourceDefinition while a custom resource with a finalizer is still stored",
	}
}

// A second API server: nothing in the catalogue is an error there, and what it does not serve is
// named. Scenarios with a server profile are left out: their flags and
// plugins are the plugins of kube-apiserver.
func TestGenericControlPlane(t *testing.T) {
	t.Parallel()
	programs := testserver.Generic(t)
	r := runOnGeneric(t, catalogue(t), providers.NewEnvtest(providers.EnvtestOptions{Assets: binaries.Options{Dir: programs.Dir}}))
	judged := 0
	for _, outcome := range r.Outcomes {
		if outcome.Area != "plugins" && (outcome.Verdict == framework.Pass || outcome.Verdict == framework.Fail) {
			judged++
		}
	}
	t.Logf("%d scenarios were judged outside of scenarios/plugins", judged)
	if judged < judgedOnGeneric {
		t.Errorf("%d scenarios were judged; want %d: use kinds that every API server serves", judged, judgedOnGeneric)
	}
}

// unsupportedOnGeneric are the reasons for which a scenario can be unsupported there.
var unsupportedOnGeneric = regexp.MustCompile(`the API server does not serve \S+ \w+|^needs |could affect other clients|^this target cannot start|^isolation: none needs|^the scenario needs an API server without other clients`)

func runOnGeneric(t *testing.T, all []scenario.Scenario, provider target.Provider) report.Report {
	t.Helper()
	r, err := engine.Run(t.Context(), engine.Options{Provider: provider, Scenarios: all, Skip: leftOutOnGeneric()})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Summary, r.Timing)
	for _, outcome := range r.Outcomes {
		switch outcome.Verdict {
		case framework.Pass, framework.Skipped:
			continue
		case framework.Unsupported:
			t.Logf("%s: %s", outcome.Name, outcome.Reason)
			if unsupportedOnGeneric.MatchString(outcome.Reason) {
				continue
			}
		}
		t.Errorf("%s is %s: %s\n%s", outcome.Name, outcome.Verdict, outcome.Reason, report.FailureText(outcome))
	}
	return r
}
