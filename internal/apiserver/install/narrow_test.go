package install

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
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
	i := &Installer{}
	requests := []framework.Request{
		{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "at-x-001-b"}, {Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: "at-x-001-a"},
		{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default"},
	}
	out := narrow(kind(KindMutatingWebhooks), in, i.toScenario(&Scope{ID: "at-x-001", namespaces: []string{"at-x-001-a"}, Requests: requests}))
	if name, _, _ := unstructured.NestedString(out, "metadata", "name"); name != "at-x-001-a" {
		t.Errorf("name: got %q", name)
	}
	want := map[string]any{
		"matchLabels": map[string]any{"k": "v"},
		"matchExpressions": []any{
			map[string]any{"key": "e", "operator": "Exists"},
			map[string]any{"key": corev1.LabelMetadataName, "operator": "In", "values": []any{"at-x-001", "at-x-001-a", "at-x-001-b"}},
		},
	}
	webhook := firstWebhook(out)
	if diff := cmp.Diff(want, webhook["namespaceSelector"]); diff != "" {
		t.Errorf("namespaceSelector: -want +got\n%s", diff)
	}
	if len(given["matchExpressions"].([]any)) != 1 {
		t.Error("the manifest of the scenario was changed")
	}
}

// Rules match namespaced objects only.
func TestNarrowScope(t *testing.T) {
	i := &Installer{}
	for scope, group := range map[any]any{nil: "", "*": "", "Namespaced": "", "Cluster": "none.admissiontest.dev"} {
		t.Run(fmt.Sprint(scope), func(t *testing.T) {
			given := rule("*")
			if scope != nil {
				given["scope"] = scope
			}
			webhook := firstWebhook(narrow(kind(KindMutatingWebhooks), webhookConfiguration(map[string]any{"name": "w", "rules": []any{given, "no rule"}}), i.toScenario(&Scope{ID: "at-x-001"})))
			policy := narrow(kind(KindValidatingPolicy), manifest("admissionregistration.k8s.io/v1", KindValidatingPolicy, "p", map[string]any{"spec": map[string]any{"matchConstraints": map[string]any{"resourceRules": []any{given}}}}), i.toScenario(&Scope{ID: "at-x-001"}))
			rules, _, _ := unstructured.NestedFieldNoCopy(policy, "spec", "matchConstraints", "resourceRules")
			for _, got := range []map[string]any{cloneMap(asList(webhook["rules"])[0]), cloneMap(asList(rules)[0])} {
				if got["scope"] != "Namespaced" && scope != "Cluster" || asList(got["apiGroups"])[0] != group {
					t.Errorf("got %v", got)
				}
			}
			if webhook["matchConditions"] != nil || cloneMap(policy["spec"])["matchConditions"] != nil {
				t.Error("it has a match condition")
			}
		})
	}
}

func TestNarrowPolicyAndBinding(t *testing.T) {
	i := &Installer{}
	to := i.toScenario(&Scope{ID: "at-x-001"})
	policy := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{rule("nodes")}},
		"matchConditions":  []any{map[string]any{"name": "given", "expression": "true"}},
	}}
	out := narrow(kind(KindValidatingPolicy), policy, to)
	if _, found, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConstraints", "namespaceSelector", "matchExpressions"); !found {
		t.Errorf("policy has no namespaceSelector: %v", out)
	}
	if conditions, _, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConditions"); len(asList(conditions)) != 1 {
		t.Errorf("policy has conditions %v, want the given one", conditions)
	}
	binding := map[string]any{"metadata": map[string]any{"name": "b"}, "spec": map[string]any{"policyName": "p"}}
	out = narrow(kind(KindValidatingBinding), binding, to)
	if diff := cmp.Diff(map[string]any{"policyName": "at-x-001-p"}, out["spec"]); diff != "" {
		t.Errorf("binding: -want +got\n%s", diff)
	}
}

// A rule that matches what a run does to find out what the API server acts on is recognised: the
// creation of ConfigMaps and the update of a Namespace.
func TestMatchesProbe(t *testing.T) {
	rule := func(scope, operation, group, resource string) map[string]any {
		return map[string]any{"scope": scope, "operations": []any{operation}, "apiGroups": []any{group}, "resources": []any{resource}}
	}
	for _, test := range []struct {
		rule map[string]any
		want bool
	}{
		{rule("*", "CREATE", "", "configmaps"), true},
		{rule("*", "UPDATE", "", "namespaces"), true},
		{rule("Cluster", "*", "*", "*"), true},
		{rule("Namespaced", "UPDATE", "", "namespaces"), false},
		{rule("Cluster", "CREATE", "", "configmaps"), false},
		{rule("*", "CREATE", "", "namespaces"), false},
		{rule("*", "UPDATE", "apps", "*"), false},
		{rule("*", "DELETE", "", "*"), false},
	} {
		t.Run(fmt.Sprint(test.rule), func(t *testing.T) {
			if got := matchesProbe(test.rule); got != test.want {
				t.Errorf("%v: got %t, want %t", test.rule, got, test.want)
			}
		})
	}
}
