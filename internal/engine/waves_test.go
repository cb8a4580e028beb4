package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Scenarios that wait longer for the API server are in their own squads, which begin first.
func TestSquads(t *testing.T) {
	t.Parallel()
	policy := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}}
	webhooks := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}}
	made := func(id string, given, install []map[string]any) *scenarioCase {
		return &scenarioCase{id: id, given: given, scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{}, {Install: install}}}}}
	}
	var got [][]string
	for _, squad := range squadsOf([]*scenarioCase{
		made("none", nil, nil), made("given", policy, nil), made("both", policy, policy), made("webhooks", webhooks, webhooks), made("step", nil, policy),
	}) {
		var ids []string
		for _, c := range squad {
			ids = append(ids, c.id)
		}
		got = append(got, ids)
	}
	if diff := cmp.Diff([][]string{{"both", "step"}, {"given"}, {"none", "webhooks"}}, got); diff != "" {
		t.Errorf("squads (-want +got):\n%s", diff)
	}
}

// A namespace gets its ServiceAccount if a scenario names Pods or ServiceAccounts anywhere.
func TestNoAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*scenarioCase{
		"request":      {scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{Subresource: "binding", Parent: &scenario.ObjectReference{Kind: "Pod"}}}}}},
		"given":        {given: []map[string]any{{"kind": "ServiceAccount"}}},
		"token":        {given: []map[string]any{{"kind": "TokenRequest"}}},
		"resource":     {given: []map[string]any{{"resources": []any{"pods"}}}},
		"installation": {scenario: scenario.Scenario{Installation: "a"}},
	} {
		if c.noAccounts() {
			t.Errorf("%s: no ServiceAccount", name)
		}
	}
	if !(&scenarioCase{given: []map[string]any{{"kind": "ConfigMap"}}}).noAccounts() {
		t.Error("a scenario with a ConfigMap gets a ServiceAccount")
	}
}

func TestCRDsLast(t *testing.T) {
	t.Parallel()
	given := func(id string, kinds ...string) *scenarioCase {
		c := &scenarioCase{id: id}
		for _, kind := range kinds {
			c.given = append(c.given, map[string]any{"kind": kind})
		}
		return c
	}
	cases := []*scenarioCase{
		given("a", "ConfigMap", "CustomResourceDefinition"), given("b"),
		given("c", "CustomResourceDefinition"), given("d", "ConfigMap"),
	}
	var got []string
	for _, c := range crdsLast(cases) {
		got = append(got, c.id)
	}
	if diff := cmp.Diff([]string{"b", "d", "a", "c"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if cases[0].id != "a" {
		t.Error("the given slice was written to")
	}
}
