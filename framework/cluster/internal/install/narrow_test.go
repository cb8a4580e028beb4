package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func connect(t *testing.T) *client.Client {
	t.Helper()
	return connectTo(t, testserver.Config(t))
}

func connectTo(t *testing.T, config *rest.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: AdmissionGroup, Version: "v1", Kind: name}
}

func webhookConfiguration(webhook map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": KindMutatingWebhooks,
		"metadata": map[string]any{"name": "a"}, "webhooks": []any{webhook},
	}
}

func rule(resources ...any) map[string]any {
	return map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": resources}
}

func firstWebhook(manifest map[string]any) map[string]any {
	return asList(manifest["webhooks"])[0].(map[string]any)
}

func TestNarrowKeepsTheManifest(t *testing.T) {
	given := map[string]any{"matchLabels": map[string]any{"k": "v"}, "matchExpressions": []any{map[string]any{"key": "e", "operator": "Exists"}}}
	in := webhookConfiguration(map[string]any{"name": "w", "rules": []any{rule("configmaps")}, "namespaceSelector": given})
	out := narrow(connect(t).Resources, kind(KindMutatingWebhooks), in, &Scope{ID: "at-x-001"})
	if name, _, _ := unstructured.NestedString(out, "metadata", "name"); name != "at-x-001-a" {
		t.Errorf("name: got %q", name)
	}
	want := map[string]any{
		"matchLabels": map[string]any{"k": "v"},
		"matchExpressions": []any{
			map[string]any{"key": "e", "operator": "Exists"},
			map[string]any{"key": ScenarioLabel, "operator": "In", "values": []any{"at-x-001"}},
		},
	}
	webhook := firstWebhook(out)
	if diff := cmp.Diff(want, webhook["namespaceSelector"]); diff != "" {
		t.Errorf("namespaceSelector: -want +got\n%s", diff)
	}
	if webhook["matchConditions"] != nil || webhook["objectSelector"] != nil {
		t.Errorf("a rule for namespaced resources needs only the selector: %v", webhook)
	}
	if len(given["matchExpressions"].([]any)) != 1 {
		t.Error("the manifest of the scenario was changed")
	}
}

func TestNarrowConditions(t *testing.T) {
	resources := connect(t).Resources
	for _, c := range []struct {
		name string
		rule map[string]any
		want bool
	}{
		{"namespaced", rule("configmaps", "pods/*"), false},
		{"cluster-scoped", rule("nodes"), true},
		{"subresource of a cluster-scoped resource", rule("nodes/proxy"), true},
		{"unknown", rule("widgets"), true},
		{"any", rule("*/*"), true},
		{"namespaces are excluded by their labels", rule("namespaces", "namespaces/status"), false},
		{"scope Namespaced", map[string]any{"scope": "Namespaced", "apiGroups": []any{"*"}, "resources": []any{"*"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := narrow(resources, kind(KindMutatingWebhooks), webhookConfiguration(map[string]any{"name": "w", "rules": []any{c.rule}}), &Scope{ID: "at-x-001"})
			if got := len(asList(firstWebhook(out)["matchConditions"])) == 1; got != c.want {
				t.Errorf("match condition added: %t, want %t", got, c.want)
			}
		})
	}
}

func TestNarrowPolicyAndBinding(t *testing.T) {
	resources := connect(t).Resources
	policy := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{rule("nodes")}},
		"matchConditions":  []any{map[string]any{"name": "given", "expression": "true"}},
	}}
	out := narrow(resources, kind(KindValidatingPolicy), policy, &Scope{ID: "at-x-001"})
	if _, found, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConstraints", "namespaceSelector", "matchExpressions"); !found {
		t.Errorf("policy has no namespaceSelector: %v", out)
	}
	if conditions, _, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConditions"); len(asList(conditions)) != 2 {
		t.Errorf("policy has conditions %v, want the given one and the added one", conditions)
	}
	binding := map[string]any{"metadata": map[string]any{"name": "b"}, "spec": map[string]any{"policyName": "p"}}
	out = narrow(resources, kind(KindValidatingBinding), binding, &Scope{ID: "at-x-001"})
	if name, _, _ := unstructured.NestedString(out, "spec", "policyName"); name != "at-x-001-p" {
		t.Errorf("binding names policy %q", name)
	}
}
