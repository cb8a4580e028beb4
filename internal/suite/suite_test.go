package suite_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/suite"
	"github.com/admissiontest/admissiontest/internal/suite/suitetest"
	"github.com/admissiontest/admissiontest/scenarios"
)

func TestOptionErrors(t *testing.T) {
	catalogue := suitetest.Scenarios()
	for name, one := range map[string]struct {
		options suite.Options
		want    string
	}{
		"Config and version":   {suite.Options{FS: catalogue, Config: &rest.Config{}, KubernetesVersion: "1.36.3"}, "Config cannot be combined with KubernetesVersion"},
		"Config and plugins":   {suite.Options{FS: catalogue, Config: &rest.Config{}, Plugins: []binaries.Plugin{{Package: "."}}}, "Config cannot be combined with"},
		"Config and observing": {suite.Options{FS: catalogue, Config: &rest.Config{}, ObservePlugins: true}, "Config cannot be combined with"},
		"assets and plugins":   {suite.Options{FS: catalogue, AssetsDir: "a", Plugins: []binaries.Plugin{{Package: "."}}}, "AssetsDir and Plugins cannot be combined"},
		"transport of envtest": {suite.Options{FS: catalogue, Transport: "url"}, "need a Config"},
		"unknown level":        {suite.Options{FS: catalogue, Levels: []framework.Level{"must"}}, `Levels has "must"`},
		"unknown name":         {suite.Options{FS: catalogue, Select: []string{"one.pas"}}, `"one.pass"`},
		"unknown skip":         {suite.Options{FS: catalogue, Skip: map[string]string{"two.pss": "x"}}, `Skip: select "two.pss"`},
		"unknown known":        {suite.Options{FS: catalogue, KnownFailing: map[string]string{"two.pss": "x"}}, `KnownFailing: select "two.pss"`},
		"nothing":              {suite.Options{FS: catalogue, Select: []string{"one.pass"}, Levels: []framework.Level{framework.May}}, "nothing selected"},
		"empty FS":             {suite.Options{FS: fstest.MapFS{}}, "nothing selected"},
		"FS and Paths":         {suite.Options{FS: catalogue, Paths: []string{"."}}, "FS and Paths cannot be combined"},
		"missing path":         {suite.Options{Paths: []string{"none"}}, "none: cannot be read"},
		"bad endpoint":         {suite.Options{FS: guarded(), Endpoints: map[string]framework.Endpoint{"guard-system/guard": {URL: "http://127.0.0.1"}}}, "is not an https URL"},
		"misspelt endpoint":    {suite.Options{FS: guarded(), Endpoints: map[string]framework.Endpoint{"guard-system/gaurd": {}}}, `did you mean "guard-system/guard"?`},
		"missing install":      {suite.Options{FS: catalogue, Install: []string{"none.yaml"}}, "Install: none.yaml: cannot be read"},
		"bad file":             {suite.Options{FS: fstest.MapFS{"a/b.yaml": {Data: []byte("kind: Scenari")}}}, "a/b.yaml:1"},
	} {
		if _, err := suite.New(one.options, nil, nil); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %v, want a part %q", name, err, one.want)
		}
	}
}

// guarded returns the scenarios of the fixture and one with a webhook under test.
func guarded() fstest.MapFS {
	out := suitetest.Scenarios()
	out["config.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: admissiontest.dev/v1alpha1
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
`)}
	return out
}

func TestJudge(t *testing.T) {
	strict, err := suite.New(suite.Options{FS: suitetest.Scenarios(), Strict: true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lenient, err := suite.New(suite.Options{FS: suitetest.Scenarios()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome := func(level framework.Level, verdict framework.Verdict) report.Outcome {
		return report.Outcome{Level: level, Verdict: verdict, Reason: "because"}
	}
	for _, test := range []struct {
		outcome         report.Outcome
		lenient, strict suite.Result
	}{
		{outcome(framework.Must, framework.Pass), suite.Passed, suite.Passed},
		{outcome(framework.Must, framework.Fail), suite.Failed, suite.Failed},
		{outcome(framework.Should, framework.Fail), suite.Skipped, suite.Failed},
		{outcome(framework.May, framework.Fail), suite.Skipped, suite.Skipped},
		{outcome(framework.Must, framework.Inconclusive), suite.Failed, suite.Failed},
		{outcome(framework.Must, framework.Errored), suite.Failed, suite.Failed},
		{outcome(framework.Must, framework.Unsupported), suite.Skipped, suite.Skipped},
		{outcome(framework.Must, framework.Skipped), suite.Skipped, suite.Skipped},
		{outcome(framework.Must, framework.Fail).WithKnownFailing("ticket"), suite.Skipped, suite.Skipped},
		{outcome(framework.Must, framework.Pass).WithKnownFailing("ticket"), suite.Failed, suite.Failed},
		{outcome(framework.Must, framework.Errored).WithKnownFailing("ticket"), suite.Failed, suite.Failed},
		{report.Outcome{Level: framework.May, Verdict: framework.Errored, Reason: "because", Mistake: true}, suite.Failed, suite.Failed},
		{outcome("", ""), suite.Failed, suite.Failed},
	} {
		if got, text := lenient.Judge(test.outcome); got != test.lenient || got != suite.Passed && text == "" {
			t.Errorf("%s %s: got %d, %q; want %d", test.outcome.Level, test.outcome.Verdict, got, text, test.lenient)
		}
		if got, _ := strict.Judge(test.outcome); got != test.strict {
			t.Errorf("%s %s, strict: got %d, want %d", test.outcome.Level, test.outcome.Verdict, got, test.strict)
		}
	}
}

func TestFailOnUnsupported(t *testing.T) {
	plan, err := suite.New(suite.Options{FS: suitetest.Scenarios(), Select: []string{"two.unsupported"}, FailOnUnsupported: true}, &suitetest.Provider{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := plan.Run(t.Context(), plan.Scenarios, nil, nil)
	if err != nil || result.ExitCode(false) != report.ExitFail {
		t.Errorf("got %d, %v; want exit code %d", result.ExitCode(false), err, report.ExitFail)
	}
	if got, text := plan.Judge(suite.Outcome(result, plan.Scenarios[0])); got != suite.Failed || !strings.Contains(text, "needs Kubernetes 1.99") {
		t.Errorf("got %d, %q; want a failure with the reason", got, text)
	}
}

func TestMissingOutcomeIsAnError(t *testing.T) {
	got := suite.Outcome(report.Report{}, scenario.Scenario{Metadata: scenario.Metadata{Name: "a.b"}})
	if got.Name != "a.b" || got.Verdict != framework.Errored {
		t.Errorf("got %+v, want an error", got)
	}
}

func TestCatalogueHasTiers(t *testing.T) {
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		for _, id := range one.Spec.Behaviours {
			if tier(t, id) == "" {
				t.Errorf("%s: behaviour %s has no tier in behaviours.tsv: is it misspelt?", one.File, id)
			}
		}
	}
	if got := tier(t, "ORDER-999"); got != "" {
		t.Errorf("tier of an unknown behaviour is %q, want none", got)
	}
}

// tier returns the tier of one behaviour, or "".
func tier(t *testing.T, id string) string {
	t.Helper()
	plan, err := suite.New(suite.Options{FS: suitetest.Scenarios()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Labels(scenario.Scenario{Spec: scenario.Spec{Level: framework.Must, Behaviours: []string{id}}})
	if len(got) == 3 { // level, tier, ID
		return got[1]
	}
	return ""
}

func TestLabels(t *testing.T) {
	plan, err := suite.New(suite.Options{FS: suitetest.Scenarios()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Labels(scenario.Scenario{Area: "order", Spec: scenario.Spec{Level: framework.Must, Behaviours: []string{"ORDER-003", "ORDER-001"}}})
	if want := "order MUST T0h ORDER-003 ORDER-001"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
