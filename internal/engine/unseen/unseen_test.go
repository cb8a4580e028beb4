package unseen

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load"
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
	loaded, err := load.FS(fstest.MapFS{"one.yaml": {Data: []byte(strings.ReplaceAll(guarded, "HOOKS", hooks))}})
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
	found := Of(s, endpoints, installed)
	const want = "calls of direct.example.com: the API server calls Service guard-system/other itself; --endpoint guard-system/other=URL makes them visible; " +
		"calls of url.example.com: the API server calls the URL of the clientConfig itself; a Service with an --endpoint makes them visible"
	if got := found.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := found.Scripted(s); got != "" {
		t.Errorf("scripted: %s", got)
	}
}

// A script for a webhook that the API server calls itself cannot be used.
func TestUnseenScripts(t *testing.T) {
	const hooks = "  hooks: {guard.example.com: {fault: reset}}"
	s := guardedScenario(t, hooks)
	const want = "the scenario has a script for webhook guard.example.com, but the API server calls this webhook through Service guard-system/guard, without a Hook: give the URL of the webhook with --endpoint guard-system/guard=URL"
	if got := Of(s, nil, nil).Scripted(s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	endpoints := map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}}
	if got := Of(s, endpoints, nil).Scripted(s); got != "" {
		t.Errorf("with an endpoint, got %q", got)
	}
	s = guardedScenario(t, "")
	if got := Of(s, nil, nil).Scripted(s); got != "" {
		t.Errorf("without a script, got %q", got)
	}
	s.Spec.When = []scenario.Step{{Parallel: []scenario.Step{{Script: map[string]scenario.Hook{"guard.example.com": {}}}}}}
	if got := Of(s, nil, nil).Scripted(s); got != want {
		t.Errorf("in a step: got %q, want %q", got, want)
	}
}
