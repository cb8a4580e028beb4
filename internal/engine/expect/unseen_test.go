package expect

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// guarded is a scenario with a webhook under test and a Hook.
const guarded = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: mine.unseen}
spec:
  level: MUST
  requirement: A requirement.
  given:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingWebhookConfiguration
      metadata: {name: guard}
      webhooks:
        - {name: guard.example.com, clientConfig: {service: {namespace: guard-system, name: guard}}}
        - {name: hook.example.com}
HOOKS
  when:
    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      then: {code: 201}
`

func guardedScenario(t *testing.T, hooks string) scenario.Scenario {
	t.Helper()
	loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(strings.ReplaceAll(guarded, "HOOKS", hooks))}}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded[0]
}

// Calls of webhooks that are installed for all scenarios are seen if their Service has an endpoint.
func TestUnseenInstalled(t *testing.T) {
	s := guardedScenario(t, "")
	shipped := func(name string, clientConfig map[string]any) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{"name": name, "clientConfig": clientConfig}}}
	}
	service := func(name string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": "guard-system", "name": name}}
	}
	installed := []map[string]any{
		shipped("url.example.com", map[string]any{"url": "https://h"}), shipped("", service("other")), {"kind": "ConfigMap"},
		shipped("seen.example.com", service("guard")), shipped("direct.example.com", service("other")),
	}
	endpoints := map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}
	found := UnseenOf(s, UnseenOptions{Endpoints: endpoints, Installed: installed})
	const want = "calls of direct.example.com: the API server calls Service guard-system/other itself; --endpoint guard-system/other=URL makes them visible; " +
		"calls of url.example.com: the API server calls the address in the clientConfig itself; in given, install or --install, a Service with an --endpoint makes them visible"
	if got := found.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := found.Unusable(s); got != "" {
		t.Errorf("unusable: %s", got)
	}
	if _, is := UnseenOf(s, UnseenOptions{Endpoints: endpoints, Installed: installed, URLs: true})["url.example.com"]; is {
		t.Error("calls of a URL are not seen, although they go through a Hook")
	}
}

// A script for a webhook that the API server calls itself cannot be used.
func TestUnseenScripts(t *testing.T) {
	const hooks = "  hooks: {guard.example.com: {fault: reset}}"
	s := guardedScenario(t, hooks)
	const want = "the scenario has a script for webhook guard.example.com, but the API server calls this webhook through Service guard-system/guard, without a Hook: give the URL of the webhook with --endpoint guard-system/guard=URL"
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	endpoints := map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}
	if got := UnseenOf(s, UnseenOptions{Endpoints: endpoints}).Unusable(s); got != "" {
		t.Errorf("with an endpoint, got %q", got)
	}
	s = guardedScenario(t, "")
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != "" {
		t.Errorf("without a script, got %q", got)
	}
	s.Spec.When = []scenario.Step{{Parallel: []scenario.Step{{Script: map[string]scenario.Hook{"guard.example.com": {}}}}}}
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); got != want {
		t.Errorf("in a step: got %q, want %q", got, want)
	}
}

// An expectation of calls cannot be checked if some are not seen. A webhook that a request configures is called without a
// Hook, whatever Endpoints there are.
func TestUndecidable(t *testing.T) {
	endpoint := UnseenOptions{URLs: true, Endpoints: map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}}
	const why = "admissiontest cannot check the expected calls: calls of "
	configure, body := guardedScenario(t, ""), `{"webhooks": [{"clientConfig": {"url": "https://h"}}]}`
	configure.Spec.When = append(configure.Spec.When, scenario.Step{Update: configure.Spec.Given[0]})
	anyName := guardedScenario(t, "")
	anyName.Spec.When = append(anyName.Spec.When, scenario.Step{Update: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1"}, Body: &body})
	uses := guardedScenario(t, "")
	uses.Spec.When[0].Create["data"] = map[string]any{"uid": "$(steps.a.calls.0.request.uid)"}
	for name, test := range map[string]struct {
		s       scenario.Scenario
		expect  *scenario.Expectation
		options UnseenOptions
		want    string
	}{
		"no calls":       {guardedScenario(t, ""), &scenario.Expectation{Code: []int{201}}, UnseenOptions{}, ""},
		"calls":          {guardedScenario(t, ""), &scenario.Expectation{Calls: &scenario.Calls{}}, UnseenOptions{}, why + "guard.example.com"},
		"times":          {guardedScenario(t, ""), &scenario.Expectation{AnsweredLast: true}, UnseenOptions{}, why + "guard.example.com"},
		"a placeholder":  {uses, nil, UnseenOptions{}, why + "guard.example.com"},
		"an endpoint":    {uses, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, ""},
		"a request":      {configure, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, why + "guard.example.com"},
		"only a request": {configure, nil, endpoint, ""},
		"any webhook":    {anyName, &scenario.Expectation{Calls: &scenario.Calls{}}, endpoint, why + "any webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			test.s.Spec.When[0].Then = test.expect
			got := UnseenOf(test.s, test.options).Undecidable(test.s)
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
