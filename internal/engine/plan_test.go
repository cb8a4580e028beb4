package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
)

// Scenarios that wait longer for the API server are in their own squads, which begin first.
func TestSquads(t *testing.T) {
	t.Parallel()
	policy := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}}
	webhooks := []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}}
	made := func(id string, given, install []map[string]any) *execution.Setup {
		return &execution.Setup{Case: &execution.Case{ID: id, Given: given, Scenario: scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{{}, {Install: install}}}}}}
	}
	var got [][]string
	for _, squad := range squadsOf([]*execution.Setup{
		made("none", nil, nil), made("given", policy, nil), made("both", policy, policy), made("webhooks", webhooks, webhooks), made("step", nil, policy),
	}) {
		var ids []string
		for _, c := range squad {
			ids = append(ids, c.ID)
		}
		got = append(got, ids)
	}
	if diff := cmp.Diff([][]string{{"both", "step"}, {"given"}, {"none", "webhooks"}}, got); diff != "" {
		t.Errorf("squads (-want +got):\n%s", diff)
	}
}

func TestCRDsLast(t *testing.T) {
	t.Parallel()
	given := func(id string, kinds ...string) *execution.Setup {
		c := &execution.Setup{Case: &execution.Case{ID: id}}
		for _, kind := range kinds {
			c.Given = append(c.Given, map[string]any{"kind": kind})
		}
		return c
	}
	cases := []*execution.Setup{
		given("a", "ConfigMap", "CustomResourceDefinition"), given("b"),
		given("c", "CustomResourceDefinition"), given("d", "ConfigMap"),
	}
	var got []string
	for _, c := range crdsLast(cases) {
		got = append(got, c.ID)
	}
	if diff := cmp.Diff([]string{"b", "d", "a", "c"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if cases[0].ID != "a" {
		t.Error("the given slice was written to")
	}
}
