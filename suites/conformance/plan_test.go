package conformance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
	"github.com/admissiontest/admissiontest/scenarios"
	"github.com/admissiontest/admissiontest/suites/conformance"
	"github.com/admissiontest/admissiontest/suites/conformance/internal/plan"
)

func TestOptionErrors(t *testing.T) {
	catalogue := os.DirFS("testdata/fixture")
	from := func(options conformance.Options) conformance.Options {
		options.Selection.FS = catalogue
		return options
	}
	selecting := func(selection conformance.Selection) conformance.Options {
		selection.FS = catalogue
		return conformance.Options{Selection: selection}
	}
	plugins := conformance.Subject{Plugins: []envtest.Plugin{{Package: "."}}}
	running := conformance.Target{Config: &rest.Config{}}
	endpoints := func(endpoints map[string]framework.Endpoint) conformance.Options {
		return conformance.Options{Selection: conformance.Selection{FS: guarded()}, Subject: conformance.Subject{Endpoints: endpoints}}
	}
	for name, one := range map[string]struct {
		options conformance.Options
		want    string
	}{
		"Config and version":      {from(conformance.Options{Target: conformance.Target{Config: &rest.Config{}, Version: "1.36.3"}}), "cannot be combined with Target.Version"},
		"Config and plugins":      {from(conformance.Options{Target: running, Subject: plugins}), "Target.Config and Target.Environment cannot be combined with"},
		"Config and observing":    {from(conformance.Options{Target: conformance.Target{Config: &rest.Config{}, ObservePlugins: true}}), "Target.Config and Target.Environment cannot be combined with"},
		"Config and Environment":  {from(conformance.Options{Target: conformance.Target{Config: &rest.Config{}, Environment: &envtest.Environment{}}}), "Target.Config and Target.Environment cannot be combined: "},
		"Environment and version": {from(conformance.Options{Target: conformance.Target{Environment: &envtest.Environment{}, Version: "1.36.3"}}), "cannot be combined with Target.Version"},
		"directory and plugins":   {from(conformance.Options{Target: conformance.Target{BinaryAssetsDirectory: "a"}, Subject: plugins}), "BinaryAssetsDirectory and Subject.Plugins cannot be combined"},
		"transport of envtest":    {from(conformance.Options{Target: conformance.Target{Transport: "url"}}), "need a Target.Config"},
		"unknown level":           {selecting(conformance.Selection{Levels: []framework.Level{"must"}}), `Levels has "must"`},
		"unknown name":            {selecting(conformance.Selection{Names: []string{"one.pas"}}), `"one.pass"`},
		"unknown skip":            {selecting(conformance.Selection{Skip: map[string]string{"two.pss": "x"}}), `Skip: select "two.pss"`},
		"unknown known":           {from(conformance.Options{Report: conformance.Report{KnownFailing: map[string]string{"two.pss": "x"}}}), `KnownFailing: select "two.pss"`},
		"nothing":                 {selecting(conformance.Selection{Names: []string{"one.pass"}, Levels: []framework.Level{framework.May}}), "nothing selected"},
		"empty FS":                {conformance.Options{Selection: conformance.Selection{FS: fstest.MapFS{}}}, "nothing selected"},
		"FS and Paths":            {selecting(conformance.Selection{Paths: []string{"."}}), "FS and Selection.Paths cannot be combined"},
		"missing path":            {conformance.Options{Selection: conformance.Selection{Paths: []string{"none"}}}, "none: cannot be read"},
		"bad endpoint":            {endpoints(map[string]framework.Endpoint{"guard-system/guard": {URL: "http://127.0.0.1"}}), "is not an https URL"},
		"misspelt endpoint":       {endpoints(map[string]framework.Endpoint{"guard-system/gaurd": {}}), `did you mean "guard-system/guard"?`},
		"missing install":         {from(conformance.Options{Subject: conformance.Subject{Install: []string{"none.yaml"}}}), "Install: none.yaml: cannot be read"},
		"bad file":                {conformance.Options{Selection: conformance.Selection{FS: fstest.MapFS{"a/b.yaml": {Data: []byte("kind: Scenari")}}}}, "a/b.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := one.options.Plan(nil, nil); err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v, want a part %q", err, one.want)
			}
		})
	}
}

// guarded returns a scenario with a webhook under test.
func guarded() fstest.MapFS {
	return fstest.MapFS{"config.yaml": {Data: []byte(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: one.guarded}
spec:
  level: MUST
  requirement: A requirement.
  source: ["https://example.com/source"]
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: guard}
      webhooks: [{name: guard.example.com, clientConfig: {service: {namespace: guard-system, name: guard}}}]
  when:
    - get: {apiVersion: v1, kind: ConfigMap, name: a}
`)}}
}

func TestJudge(t *testing.T) {
	lenient, strict := fixture(t, conformance.Report{}), fixture(t, conformance.Report{Strict: true})
	outcome := func(level framework.Level, verdict framework.Verdict) report.Outcome {
		return report.Outcome{Level: level, Verdict: verdict, Reason: "because"}
	}
	for _, test := range []struct {
		outcome         report.Outcome
		lenient, strict plan.Result
	}{
		{outcome(framework.Must, framework.Pass), plan.Passed, plan.Passed},
		{outcome(framework.Must, framework.Fail), plan.Failed, plan.Failed},
		{outcome(framework.Should, framework.Fail), plan.Skipped, plan.Failed},
		{outcome(framework.May, framework.Fail), plan.Skipped, plan.Skipped},
		{outcome(framework.Must, framework.Inconclusive), plan.Failed, plan.Failed},
		{outcome(framework.Must, framework.Errored), plan.Failed, plan.Failed},
		{outcome(framework.Must, framework.Unsupported), plan.Skipped, plan.Skipped},
		{outcome(framework.Must, framework.Skipped), plan.Skipped, plan.Skipped},
		{outcome(framework.Must, framework.Fail).WithKnownFailing("ticket"), plan.Skipped, plan.Skipped},
		{outcome(framework.Must, framework.Pass).WithKnownFailing("ticket"), plan.Failed, plan.Failed},
		{outcome(framework.Must, framework.Errored).WithKnownFailing("ticket"), plan.Failed, plan.Failed},
		{report.Outcome{Level: framework.May, Verdict: framework.Errored, Reason: "because", Mistake: true}, plan.Failed, plan.Failed},
		{outcome("", ""), plan.Failed, plan.Failed},
	} {
		t.Run(fmt.Sprintf("%s %s", test.outcome.Level, test.outcome.Verdict), func(t *testing.T) {
			if got, text := lenient.Judge(test.outcome); got != test.lenient || got != plan.Passed && text == "" {
				t.Errorf("%s %s: got %d, %q; want %d", test.outcome.Level, test.outcome.Verdict, got, text, test.lenient)
			}
			if got, _ := strict.Judge(test.outcome); got != test.strict {
				t.Errorf("%s %s, strict: got %d, want %d", test.outcome.Level, test.outcome.Verdict, got, test.strict)
			}
		})
	}
}

func TestFailOnUnsupported(t *testing.T) {
	chosen, err := conformance.Options{
		Selection: conformance.Selection{FS: os.DirFS("testdata/fixture"), Names: []string{"two.unsupported"}}, Report: conformance.Report{FailOnUnsupported: true},
	}.Plan(&targettest.Provider{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := chosen.Run(t.Context(), chosen.Scenarios, nil, nil)
	if err != nil || result.ExitCode(false) != report.ExitFail {
		t.Errorf("got %d, %v; want exit code %d", result.ExitCode(false), err, report.ExitFail)
	}
	if got, text := chosen.Judge(plan.Outcome(result, chosen.Scenarios[0])); got != plan.Failed || !strings.Contains(text, "needs Kubernetes 1.99") {
		t.Errorf("got %d, %q; want a failure with the reason", got, text)
	}
}

func TestMissingOutcomeIsAnError(t *testing.T) {
	got := plan.Outcome(report.Report{}, scenario.Scenario{Metadata: scenario.Metadata{Name: "a.b"}})
	if got.Name != "a.b" || got.Verdict != framework.Errored {
		t.Errorf("got %+v, want an error", got)
	}
}

// fixture returns the plan of the scenarios of testdata/fixture.
func fixture(t *testing.T, report conformance.Report) *plan.Plan {
	t.Helper()
	chosen, err := conformance.Options{Selection: conformance.Selection{FS: os.DirFS("testdata/fixture")}, Report: report}.Plan(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

// A spec has the area, level, tier and behaviours of its scenario as labels. Each behaviour of the catalogue has a tier: otherwise it is
// misspelt.
func TestLabels(t *testing.T) {
	chosen := fixture(t, conformance.Report{})
	labels := func(area string, behaviours ...string) string {
		return strings.Join(chosen.Labels(scenario.Scenario{Area: area, Spec: scenario.Spec{Level: framework.Must, Behaviours: behaviours}}), " ")
	}
	if got, want := labels("order", "ORDER-003", "ORDER-001"), "order MUST T0h ORDER-003 ORDER-001"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := len(strings.Fields(labels("", "ORDER-999"))); got != 2 { // the level and the ID
		t.Errorf("an unknown behaviour has %d labels, want no tier", got)
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		for _, id := range one.Spec.Behaviours {
			if len(strings.Fields(labels("", id))) != 3 {
				t.Errorf("%s: behaviour %s has no tier in behaviours.tsv: is it misspelt?", one.File, id)
			}
		}
	}
}
