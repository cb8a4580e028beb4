package engine

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/load"
)

// callsSandbox answers each request with the calls of one Hook.
type callsSandbox struct{ fakeSandbox }

func (*callsSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 201
	result.Trace = framework.Trace{{Webhook: "hook.example.com", Phase: framework.Validating, Observed: true}}
	return result, nil
}

const unseenScenario = `apiVersion: admissiontest.dev/v1alpha1
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
      then: THEN
`

func unseenCase(t *testing.T, hooks, then string, endpoints map[string]framework.Endpoint) *scenarioCase {
	t.Helper()
	text := strings.NewReplacer("HOOKS", hooks, "THEN", then).Replace(unseenScenario)
	loaded, err := load.FS(fstest.MapFS{"one.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	c := caseOn(&callsSandbox{})
	c.scenario, c.unseen = loaded[0], unseenWebhooks(loaded[0], endpoints, nil)
	return c
}

// An expectation of calls that are not seen is never a pass. What can be decided can fail.
func TestUnseenCalls(t *testing.T) {
	const why = "the expectation of calls cannot be decided: calls of guard.example.com: the API server calls Service guard-system/guard itself; --endpoint guard-system/guard=URL makes them visible"
	for then, want := range map[string]framework.Verdict{
		"{code: 201}":                                          framework.Pass,
		"{calls: {include: [hook.example.com]}}":               framework.Pass,
		"{calls: {include: [hook.example.com], exclude: []}}":  framework.Pass,
		"{overlapping: []}":                                    framework.Pass,
		"{calls: [guard.example.com, hook.example.com]}":       framework.Inconclusive,
		"{calls: [hook.example.com]}":                          framework.Inconclusive,
		"{calls: [guard.example.com]}":                         framework.Fail,
		"{calls: []}":                                          framework.Fail,
		"{calls: {anyOrder: [hook.example.com]}}":              framework.Inconclusive,
		"{calls: {include: [guard.example.com]}}":              framework.Inconclusive,
		"{calls: {exclude: [guard.example.com]}}":              framework.Inconclusive,
		"{calls: {exclude: [hook.example.com]}}":               framework.Fail,
		"{code: 403, calls: {include: [guard.example.com]}}":   framework.Fail,
		"{calls: {include: [hook.example.com]}, serial: true}": framework.Inconclusive,
		"{distinct: [review.request.uid]}":                     framework.Inconclusive,
		"{answeredLast: true}":                                 framework.Inconclusive,
		"{overlapping: [guard.example.com]}":                   framework.Inconclusive,
	} {
		c := unseenCase(t, "", then, nil)
		failed := c.step(t.Context(), c.scenario.Spec.When[0])
		got := framework.Pass
		if failed != nil {
			outcome := failed.outcome(c, 1, 1)
			if got = outcome.Verdict; got == framework.Inconclusive && !strings.HasSuffix(outcome.Reason, why) {
				t.Errorf("%s: reason %q", then, outcome.Reason)
			}
			if len(outcome.Evidence.NotSeen) != 1 {
				t.Errorf("%s: the evidence does not say what is not seen", then)
			}
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", then, got, failed, want)
		}
		seen := unseenCase(t, "", then, map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}})
		if failed := seen.step(t.Context(), seen.scenario.Spec.When[0]); failed != nil && failed.outcome(seen, 1, 1).Verdict == framework.Inconclusive {
			t.Errorf("%s: with an endpoint, got inconclusive", then)
		}
	}
}

// Calls of webhooks that are installed for all scenarios are seen if their Service has an endpoint.
func TestUnseenInstalled(t *testing.T) {
	c := unseenCase(t, "", "{calls: []}", nil)
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
	c.unseen = unseenWebhooks(c.scenario, endpoints, installed)
	const want = "calls of direct.example.com: the API server calls Service guard-system/other itself; --endpoint guard-system/other=URL makes them visible; " +
		"calls of url.example.com: the API server calls the URL of the clientConfig itself; a Service with an --endpoint makes them visible"
	if got := c.unseen.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := c.unseen.scripted(c.scenario); got != "" {
		t.Errorf("scripted: %s", got)
	}
}

// A script for a webhook that the API server calls itself cannot be used.
func TestUnseenScripts(t *testing.T) {
	const hooks = "  hooks: {guard.example.com: {fault: reset}}"
	c := unseenCase(t, hooks, "{}", nil)
	const want = "it has a script for webhook guard.example.com, which the API server calls by Service guard-system/guard itself: give the URL of the webhook with --endpoint guard-system/guard=URL"
	if got := c.unseen.scripted(c.scenario); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c = unseenCase(t, "", "{}", nil)
	if got := c.unseen.scripted(c.scenario); got != "" {
		t.Errorf("without a script, got %q", got)
	}
	c.scenario.Spec.When = []scenario.Step{{Parallel: []scenario.Step{{Script: map[string]scenario.Hook{"guard.example.com": {}}}}}}
	if got := c.unseen.scripted(c.scenario); got != want {
		t.Errorf("in a step: got %q, want %q", got, want)
	}
	c = unseenCase(t, hooks, "{}", map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}})
	if got := c.unseen.scripted(c.scenario); got != "" {
		t.Errorf("with an endpoint, got %q", got)
	}
}
