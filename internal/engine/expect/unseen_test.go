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

// A webhook that a request configures is called without a Hook, whatever Endpoints there are. It matters
// only if a step expects calls.
func TestUnseenOfRequests(t *testing.T) {
	options := UnseenOptions{URLs: true, Endpoints: map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}}
	hook := scenario.Call{Webhook: "hook.example.com"}
	for name, test := range map[string]struct {
		expect   *scenario.Expectation
		seen     bool
		complete bool
	}{
		"no calls": {&scenario.Expectation{Code: []int{201}}, true, true},
		"other":    {&scenario.Expectation{Calls: &scenario.Calls{Include: []scenario.Call{hook}}}, false, true},
		"exclude":  {&scenario.Expectation{Calls: &scenario.Calls{Exclude: []string{"guard.example.com"}}}, false, false},
		"all":      {&scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{hook}}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := guardedScenario(t, "")
			s.Spec.When = append(s.Spec.When, scenario.Step{Update: s.Spec.Given[0], Then: test.expect})
			found := UnseenOf(s, options)
			if _, complete := found.Decidable(test.expect); complete != test.complete || (len(found) == 0) != test.seen {
				t.Errorf("found %v, complete %t; want %t, %t", found, complete, test.seen, test.complete)
			}
		})
	}
}

// If it is not known which webhook a request configures, no call is decisive.
func TestUnseenOfAnyName(t *testing.T) {
	s := guardedScenario(t, "")
	body := `{"webhooks": [{"clientConfig": {"url": "https://h"}}]}`
	s.Spec.Given = nil
	expect := &scenario.Expectation{Calls: &scenario.Calls{Include: []scenario.Call{{Webhook: "hook.example.com"}}}}
	s.Spec.When = []scenario.Step{{Update: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1"}, Body: &body, Then: expect}}
	part, complete := UnseenOf(s, UnseenOptions{URLs: true}).Decidable(expect)
	if complete || len(part.Calls.Include) != 0 {
		t.Errorf("got %v, complete %t; want no calls, and not complete", part.Calls, complete)
	}
}

// The first call that is seen can be another one than the first.
func TestUnseenPlaceholder(t *testing.T) {
	s := guardedScenario(t, "")
	s.Spec.When[0].Create["data"] = map[string]any{"uid": "$(steps.a.calls.0.request.uid)"}
	const want = "a placeholder $(steps.ID.calls.…) needs all calls of a step: calls of guard.example.com: "
	if got := UnseenOf(s, UnseenOptions{}).Unusable(s); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := UnseenOf(s, UnseenOptions{Endpoints: map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}}).Unusable(s); got != "" {
		t.Errorf("with an endpoint, got %q", got)
	}
}
