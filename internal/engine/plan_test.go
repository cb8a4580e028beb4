package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
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

// unservedTarget does not serve the kinds that scenarios define.
type unservedTarget struct{ targettest.Target }

func (unservedTarget) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	if strings.HasSuffix(kind.Group, ".example.com") {
		return false, errors.New("not served")
	}
	return true, nil
}

// Custom resources of the same name are in the namespaces of their scenarios, so those run at the same time: the scope
// of a kind that a scenario defines is known before it is served.
func TestCustomResourcesShareAWave(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]int{"Namespaced": 1, "Cluster": 2} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := scenario.Scenario{Metadata: scenario.Metadata{Name: "a"}, Spec: scenario.Spec{
				Given: []map[string]any{{
					"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.own.example.com"},
					"spec": map[string]any{"group": "own.example.com", "scope": scope, "names": map[string]any{"kind": "Widget"}},
				}},
				When: []scenario.Step{{Create: map[string]any{"apiVersion": "own.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "subject"}}}},
			}}
			var setups []*execution.Setup
			for number := range 2 {
				setup, err := execution.New(s, unservedTarget{}, execution.Options{Number: number, Secrets: func() *redact.Set { return &redact.Set{} }})
				if err != nil {
					t.Fatal(err)
				}
				setups = append(setups, setup)
			}
			if got := wavesOf(setups, false); len(got) != want {
				t.Errorf("%d waves, want %d", len(got), want)
			}
			if got := wavesOf(setups, true); len(got) != 2 {
				t.Errorf("%d waves of one scenario each, want 2", len(got))
			}
		})
	}
}
