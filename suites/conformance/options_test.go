package conformance_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/scenarios"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// recorder is a T that notes what it is told.
type recorder struct{ fatal string }

func (*recorder) Helper() {}
func (*recorder) Fail()   {}
func (r *recorder) Fatalf(format string, arguments ...any) {
	r.fatal = fmt.Sprintf(format, arguments...)
}

func TestUnusableOptionsEndTheTest(t *testing.T) {
	catalogue := fixtureScenarios()
	for name, one := range map[string]struct {
		options conformance.Options
		want    string
	}{
		"both":          {conformance.Options{FS: catalogue, Config: &rest.Config{}, Provider: &fixture{}}, "Config and Provider are both set"},
		"unknown level": {conformance.Options{FS: catalogue, Levels: []framework.Level{"must"}}, `Levels has "must"`},
		"unknown name":  {conformance.Options{FS: catalogue, Select: []string{"one.pas"}}, `"one.pass"`},
		"unknown skip":  {conformance.Options{FS: catalogue, Skip: map[string]string{"two.pss": "x"}}, `Skip: select "two.pss"`},
		"nothing":       {conformance.Options{FS: catalogue, Select: []string{"one.pass"}, Levels: []framework.Level{framework.May}}, "nothing selected"},
		"empty FS":      {conformance.Options{FS: fstest.MapFS{}}, "nothing selected"},
		"FS and Paths":  {conformance.Options{FS: catalogue, Paths: []string{"."}}, "FS and Paths are both set"},
		"missing path":  {conformance.Options{Paths: []string{"none"}}, "none: cannot be read"},
		"bad endpoint":  {conformance.Options{FS: guarded(), Endpoints: map[string]cluster.Endpoint{"guard-system/guard": {URL: "http://127.0.0.1"}}}, "is no https URL"},
		"odd endpoint":  {conformance.Options{FS: guarded(), Endpoints: map[string]cluster.Endpoint{"guard-system/gaurd": {}}}, `did you mean "guard-system/guard"?`},
		"bad file":      {conformance.Options{FS: fstest.MapFS{"a/b.yaml": {Data: []byte("kind: Scenari")}}}, "a/b.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := &recorder{}
			conformance.Run(got, one.options)
			if !strings.Contains(got.fatal, one.want) {
				t.Errorf("got %q, want a part %q", got.fatal, one.want)
			}
		})
	}
}

// guarded are the fixture's scenarios and one with a webhook under test.
func guarded() fstest.MapFS {
	out := fixtureScenarios()
	out["config.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: one.guarded}
spec:
  level: MUST
  requirement: A law.
  source: ["https://example.com/law"]
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

func TestCatalogueHasTiers(t *testing.T) {
	all, err := scenario.Load(scenarios.FS)
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

// tier returns the tier of one behaviour as the labels tell it, or "".
func tier(t *testing.T, id string) string {
	t.Helper()
	got, err := conformance.Labels(scenario.Scenario{Spec: scenario.Spec{Level: framework.Must, Behaviours: []string{id}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 3 { // level, tier, ID
		return got[1]
	}
	return ""
}

func ExampleLabels() {
	got, err := conformance.Labels(scenario.Scenario{
		Area: "order",
		Spec: scenario.Spec{Level: framework.Must, Behaviours: []string{"ORDER-003", "ORDER-001"}},
	})
	fmt.Println(strings.Join(got, " "), err)
	// Output: order MUST T0h ORDER-003 ORDER-001 <nil>
}
