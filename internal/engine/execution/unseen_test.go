package execution

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
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

func unseenCase(t *testing.T, hooks, then string, endpoints map[string]framework.Endpoint) *Case {
	t.Helper()
	text := strings.NewReplacer("HOOKS", hooks, "THEN", then).Replace(unseenScenario)
	loaded, err := scenario.Load(scenario.LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	c := caseOn(&callsSandbox{})
	c.Scenario, c.Unseen = loaded[0], expect.UnseenOf(loaded[0], expect.UnseenOptions{Endpoints: endpoints})
	return c
}

// An expectation of calls that are not seen is never a pass. What can be decided can fail.
func TestUnseenCalls(t *testing.T) {
	const why = "admissiontest cannot check the expected calls: calls of guard.example.com: the API server calls Service guard-system/guard itself; --endpoint guard-system/guard=URL makes them visible"
	for then, want := range map[string]framework.Verdict{
		"{code: 201}":                                          framework.Pass,
		"{calls: {include: [hook.example.com]}}":               framework.Pass,
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
		t.Run(then, func(t *testing.T) {
			c := unseenCase(t, "", then, nil)
			failed := c.step(t.Context(), c.Scenario.Spec.When[0])
			got := framework.Pass
			if failed != nil {
				outcome := c.Outcome(failed)
				if got = outcome.Verdict; got == framework.Inconclusive && !strings.HasSuffix(outcome.Reason, why) {
					t.Errorf("reason %q", outcome.Reason)
				}
				if len(outcome.Evidence.NotSeen) != 1 {
					t.Error("the evidence does not say what is not seen")
				}
			}
			if got != want {
				t.Errorf("got %s (%v), want %s", got, failed, want)
			}
			seen := unseenCase(t, "", then, map[string]framework.Endpoint{"guard-system/guard": {URL: "https://h"}})
			if failed := seen.step(t.Context(), seen.Scenario.Spec.When[0]); failed != nil && seen.Outcome(failed).Verdict == framework.Inconclusive {
				t.Error("with an endpoint, got inconclusive")
			}
		})
	}
}
