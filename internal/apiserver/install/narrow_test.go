package install

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// narrow narrows a manifest to a scenario. Others is true if the API server has other clients.
func narrow(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, scope *Scope, others bool) map[string]any {
	i := &Installer{Client: &client.Client{Resources: resources}}
	if others {
		i.Shared = true
	}
	return narrowTo(resources, kind, manifest, i.toScenario(scope))
}

func TestNarrowKeepsTheManifest(t *testing.T) {
	given := map[string]any{"matchLabels": map[string]any{"k": "v"}, "matchExpressions": []any{map[string]any{"key": "e", "operator": "Exists"}}}
	in := webhookConfiguration(map[string]any{"name": "w", "rules": []any{rule("configmaps")}, "namespaceSelector": given})
	out := narrow(connect(t).Resources, kind(KindMutatingWebhooks), in, &Scope{ID: "at-x-001"}, false)
	if name, _, _ := unstructured.NestedString(out, "metadata", "name"); name != "at-x-001-a" {
		t.Errorf("name: got %q", name)
	}
	want := map[string]any{
		"matchLabels": map[string]any{"k": "v"},
		"matchExpressions": []any{
			map[string]any{"key": "e", "operator": "Exists"},
			map[string]any{"key": namespaceNameLabel, "operator": "In", "values": []any{"at-x-001"}},
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
			out := narrow(resources, kind(KindMutatingWebhooks), webhookConfiguration(map[string]any{"name": "w", "rules": []any{c.rule}}), &Scope{ID: "at-x-001"}, false)
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
	out := narrow(resources, kind(KindValidatingPolicy), policy, &Scope{ID: "at-x-001"}, false)
	if _, found, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConstraints", "namespaceSelector", "matchExpressions"); !found {
		t.Errorf("policy has no namespaceSelector: %v", out)
	}
	if conditions, _, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConditions"); len(asList(conditions)) != 2 {
		t.Errorf("policy has conditions %v, want the given one and the added one", conditions)
	}
	binding := map[string]any{"metadata": map[string]any{"name": "b"}, "spec": map[string]any{"policyName": "p"}}
	out = narrow(resources, kind(KindValidatingBinding), binding, &Scope{ID: "at-x-001"}, false)
	if name, _, _ := unstructured.NestedString(out, "spec", "policyName"); name != "at-x-001-p" {
		t.Errorf("binding names policy %q", name)
	}
}

// created is the Request that creates an object.
func created(apiVersion, kind, name string) framework.Request {
	return framework.Request{Verb: framework.VerbCreate, Kind: schema.FromAPIVersionAndKind(apiVersion, kind), Object: &unstructured.Unstructured{Object: manifest(apiVersion, kind, name, nil)}}
}

// What an API server evaluates before match conditions is narrowed by the rules.
func TestNarrowRules(t *testing.T) {
	resources := connect(t).Resources
	roles := map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*"}}
	named := map[string]any{"apiGroups": []any{"rbac.authorization.k8s.io"}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"clusterroles"}, "resourceNames": []any{"x", "other"}, "scope": "Cluster"}
	params := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	role, unnamed := created("rbac.authorization.k8s.io/v1", "ClusterRole", "x"), created("rbac.authorization.k8s.io/v1", "ClusterRole", "")
	dynamic := created("rbac.authorization.k8s.io/v1", "ClusterRole", "$(steps.a.object.metadata.name)")
	for name, test := range map[string]struct {
		rule, params any
		others       bool
		requests     []framework.Request
		want         string
	}{
		"without parameters, alone":        {roles, nil, false, []framework.Request{role}, "[* []]"},
		"with parameters":                  {roles, params, false, []framework.Request{role}, "[Namespaced []] [Cluster [at-x-001 x]]"},
		"with other clients":               {roles, nil, true, []framework.Request{role}, "[Namespaced []] [Cluster [at-x-001 x]]"},
		"for namespaced objects":           {rule("pods"), params, true, []framework.Request{role}, "[* []]"},
		"no request":                       {roles, params, true, []framework.Request{}, "[Namespaced []] [Cluster [at-x-001]]"},
		"a generated name":                 {roles, params, false, []framework.Request{unnamed}, "[Namespaced []] [Cluster [at-x-001 ]]"},
		"a name that is not known":         {roles, params, false, []framework.Request{dynamic}, "[* []]"},
		"requests that are not known":      {roles, params, false, nil, "[* []]"},
		"its own names":                    {named, params, false, []framework.Request{role}, "[Cluster [at-x-001 x]]"},
		"a namespace":                      {roles, params, false, []framework.Request{created("v1", "Namespace", "blue")}, "[Namespaced []] [Cluster [at-x-001 blue]]"},
		"an object of another kind, named": {named, params, false, []framework.Request{created("storage.k8s.io/v1", "StorageClass", "y")}, "[Cluster [at-x-001]]"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"paramKind": test.params, "matchConstraints": map[string]any{"resourceRules": []any{test.rule}}}}
			out := narrow(resources, kind(KindValidatingPolicy), policy, &Scope{ID: "at-x-001", Requests: test.requests}, test.others)
			rules, _, _ := unstructured.NestedFieldNoCopy(out, "spec", "matchConstraints", "resourceRules")
			got := ""
			for _, item := range asList(rules) {
				one := cloneMap(item)
				setDefault(one, "scope", "*")
				got += fmt.Sprintf(" [%v %v]", one["scope"], asList(one["resourceNames"]))
			}
			if got != " "+test.want {
				t.Errorf("got rules%s, want %s", got, test.want)
			}
		})
	}
}

// The rules of webhooks have no names: they are narrowed to resources, where others use the API server.
func TestNarrowWebhookRules(t *testing.T) {
	resources := connect(t).Resources
	all := map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"*", "*/status"}}
	webhook := webhookConfiguration(map[string]any{"name": "w", "rules": []any{all}})
	requests := []framework.Request{created("rbac.authorization.k8s.io/v1", "ClusterRole", "at-x-001-a"), created("v1", "Namespace", "at-x-001-b")}
	for _, test := range []struct {
		others   bool
		requests []framework.Request
		want     string
	}{
		{false, requests, "[* [* */status]]"},
		{true, requests, "[* [* */status]] [[ rbac.authorization.k8s.io] [namespaces clusterroles namespaces/status clusterroles/status]]"},
		{true, []framework.Request{}, "[* [* */status]]"},
	} {
		t.Run(fmt.Sprintf("other clients %t, %d requests", test.others, len(test.requests)), func(t *testing.T) {
			out := firstWebhook(narrow(resources, kind(KindMutatingWebhooks), webhook, &Scope{ID: "at-x-001", Requests: test.requests}, test.others))
			got := ""
			for _, item := range asList(out["rules"]) {
				groups := fmt.Sprint(texts(cloneMap(item)["apiGroups"]))
				if groups == "[*]" {
					groups = "*"
				}
				got += fmt.Sprintf(" [%s %v]", groups, texts(cloneMap(item)["resources"]))
			}
			if got != " "+test.want {
				t.Errorf("other clients %t, %d requests: got%s, want %s", test.others, len(test.requests), got, test.want)
			}
		})
	}
}

// A policy that could refuse requests of other clients before its match conditions is not installed.
func TestHarmless(t *testing.T) {
	i := &Installer{Client: &client.Client{Resources: connect(t).Resources}, Shared: true}
	roles, generated := created("rbac.authorization.k8s.io/v1", "ClusterRole", "at-x-001-a"), created("rbac.authorization.k8s.io/v1", "ClusterRole", "")
	params := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	for name, test := range map[string]struct {
		requests []framework.Request
		spec     map[string]any
		rule     map[string]any
		want     bool
	}{
		"a known name":               {[]framework.Request{roles}, map[string]any{"paramKind": params}, rule("nodes"), true},
		"a generated name":           {[]framework.Request{generated}, map[string]any{"paramKind": params}, rule("nodes"), false},
		"no known request":           {nil, map[string]any{"paramKind": params}, rule("nodes"), false},
		"without parameters":         {[]framework.Request{generated}, map[string]any{}, rule("nodes"), true},
		"an error is ignored":        {[]framework.Request{generated}, map[string]any{"paramKind": params, "failurePolicy": "Ignore"}, rule("nodes"), true},
		"namespaced":                 {[]framework.Request{generated}, map[string]any{"paramKind": params}, rule("pods"), true},
		"a generated Namespace name": {[]framework.Request{created("v1", "Namespace", "")}, map[string]any{}, rule("pods"), false},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec["matchConstraints"] = map[string]any{"resourceRules": []any{test.rule}}
			err := i.checkHarmless(kind(KindValidatingPolicy), map[string]any{"spec": test.spec}, i.toScenario(&Scope{ID: "at-x-001", Requests: test.requests}))
			if (err == nil) != test.want || err != nil && !errors.Is(err, framework.ErrForeign) {
				t.Errorf("got %v, want harmless: %t", err, test.want)
			}
		})
	}
	i.Shared = false
	if err := i.checkHarmless(kind(KindValidatingPolicy), map[string]any{"spec": map[string]any{"paramKind": params}}, i.toScenario(&Scope{ID: "at-x-001"})); err != nil {
		t.Errorf("on an API server without other clients: %v", err)
	}
}
