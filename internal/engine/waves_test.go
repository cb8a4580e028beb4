package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Scenarios that wait longer for the API server are arranged first, and the rest in parts. Scenarios
// with one ID are not separated.
func TestSquads(t *testing.T) {
	t.Parallel()
	policy := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}}
	webhooks := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}}
	definition := []map[string]any{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	made := func(id string, given, install []map[string]any) *scenarioCase {
		return &scenarioCase{id: id, given: given, scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{}, {Install: install}}}}}
	}
	cases := []*scenarioCase{
		made("none", nil, nil), made("given", policy, nil), made("both", policy, policy), made("webhooks", webhooks, webhooks),
		made("step", nil, policy), made("definition", definition, nil), made("definition and policy", slices.Concat(definition, policy), nil),
	}
	first := []string{"none", "webhooks"}
	for i := range squadSize - 2 {
		id := fmt.Sprint(i)
		cases, first = append(cases, made(id, nil, nil)), append(first, id)
	}
	cases = append(cases, made("next", nil, nil), made("none", nil, nil), made("next", nil, nil))
	var got [][]string
	for _, squad := range squadsOf(cases) {
		var ids []string
		for _, c := range squad {
			ids = append(ids, c.id)
		}
		got = append(got, ids)
	}
	want := [][]string{{"definition"}, {"both", "step"}, {"given", "definition and policy"}, append(first, "none"), {"next", "next"}}
	if diff := cmp.Diff(want, got); diff != "" {
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
