package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func known() *resources {
	return &resources{
		byKind: map[schema.GroupVersionKind]resource{},
		namespaced: map[schema.GroupResource]bool{
			{Resource: "configmaps"}: true, {Resource: "nodes"}: false, {Resource: "namespaces"}: false,
		},
	}
}

func webhookConfiguration(webhook map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kindMutatingWebhooks,
		"metadata": map[string]any{"name": "a"}, "webhooks": []any{webhook},
	}
}

func rule(resources ...any) map[string]any {
	return map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": resources}
}

func TestNarrowKeepsWhatTheScenarioSays(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindMutatingWebhooks}
	own := map[string]any{"matchLabels": map[string]any{"k": "v"}, "matchExpressions": []any{map[string]any{"key": "e", "operator": "Exists"}}}
	in := webhookConfiguration(map[string]any{"name": "w", "rules": []any{rule("configmaps")}, "namespaceSelector": own})
	out := known().narrow(gvk, in, "at-x-001")
	if name, _ := nestedString(out, "metadata", "name"); name != "at-x-001-a" {
		t.Errorf("name: got %q", name)
	}
	webhook := asList(out["webhooks"])[0].(map[string]any)
	want := map[string]any{
		"matchLabels": map[string]any{"k": "v"},
		"matchExpressions": []any{
			map[string]any{"key": "e", "operator": "Exists"},
			map[string]any{"key": ScenarioLabel, "operator": "In", "values": []any{"at-x-001"}},
		},
	}
	if diff := cmp.Diff(want, webhook["namespaceSelector"]); diff != "" {
		t.Errorf("namespaceSelector: -want +got\n%s", diff)
	}
	if webhook["matchConditions"] != nil || webhook["objectSelector"] != nil {
		t.Errorf("a rule for namespaced resources needs no more than the selector: %v", webhook)
	}
	if len(own["matchExpressions"].([]any)) != 1 {
		t.Error("the scenario's own manifest was changed")
	}
}

func TestNarrowConditions(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindMutatingWebhooks}
	for _, c := range []struct {
		name string
		rule map[string]any
		want bool
	}{
		{"namespaced", rule("configmaps", "configmaps/*"), false},
		{"cluster-scoped", rule("nodes"), true},
		{"subresource of a cluster-scoped", rule("nodes/proxy"), true},
		{"unknown", rule("widgets"), true},
		{"any", rule("*/*"), true},
		{"namespaces are excluded by their labels", rule("namespaces", "namespaces/status"), false},
		{"scope says it", map[string]any{"scope": "Namespaced", "apiGroups": []any{"*"}, "resources": []any{"*"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := known().narrow(gvk, webhookConfiguration(map[string]any{"name": "w", "rules": []any{c.rule}}), "at-x-001")
			webhook := asList(out["webhooks"])[0].(map[string]any)
			if got := len(asList(webhook["matchConditions"])) == 1; got != c.want {
				t.Errorf("match condition added: %t, want %t", got, c.want)
			}
		})
	}
}

func TestNarrowPolicyAndBinding(t *testing.T) {
	policy := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{rule("nodes")}},
		"matchConditions":  []any{map[string]any{"name": "own", "expression": "true"}},
	}}
	out := known().narrow(schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindValidatingPolicy}, policy, "at-x-001")
	if _, ok := nestedSlice(out, "spec", "matchConstraints", "namespaceSelector", "matchExpressions"); !ok {
		t.Errorf("policy has no namespaceSelector: %v", out)
	}
	if conditions, _ := nestedSlice(out, "spec", "matchConditions"); len(conditions) != 2 {
		t.Errorf("policy has conditions %v, want its own and ours", conditions)
	}
	binding := map[string]any{"metadata": map[string]any{"name": "b"}, "spec": map[string]any{"policyName": "p"}}
	out = known().narrow(schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindValidatingBinding}, binding, "at-x-001")
	if name, _ := nestedString(out, "spec", "policyName"); name != "at-x-001-p" {
		t.Errorf("binding names policy %q", name)
	}
}
