package install

import (
	"errors"
	"fmt"
	"strings"
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

// What a fence installs is behind what scenarios install, also under names of their own.
func TestFencesAreLast(t *testing.T) {
	name := (&Scope{ID: "at-x-fence", Probes: true}).nameOf(kind(KindMutatingWebhooks), "n1")
	narrowed := narrow(kind(KindMutatingWebhooks), webhookConfiguration(map[string]any{"name": "w"}), (&Installer{}).toScenario(&Scope{ID: "at-x-fence", Probes: true}))
	if got, _, _ := unstructured.NestedString(narrowed, "metadata", "name"); name < "z" || !strings.HasPrefix(got, strings.TrimSuffix(name, "n1")) {
		t.Errorf("the name is %q, and that of the manifest %q; want both after scenarios", name, got)
	}
}

// The path of an optional element of a list is found, and no other use of optional values.
func TestOptionalElement(t *testing.T) {
	for expression, want := range map[string]string{"[?object.data[?'q']].size() == 0": "spec.validations[0].expression", "[object.?data.?q.orValue('')] == []": "", "{?'a': object.?data} == {}": "", "[?": ""} {
		policy := map[string]any{"spec": map[string]any{"validations": []any{map[string]any{"message": "[?a]", "expression": expression}}}}
		if got := optionalElement(policy); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
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

// The scenario that sends the requests: number 7 of run x.
const own = "at-x-00007"

// confinedResource returns the resource of a kind that the tests use.
func confinedResource(kind string) client.Resource {
	return map[string]client.Resource{
		"ConfigMap":                      namespaced("", "configmaps"),
		"Pod":                            namespaced("", "pods"),
		"Namespace":                      clusterScoped("", "namespaces"),
		"ClusterRoleBinding":             clusterScoped("rbac.authorization.k8s.io", "clusterrolebindings"),
		"ClusterRole":                    clusterScoped("rbac.authorization.k8s.io", "clusterroles"),
		"CustomResourceDefinition":       clusterScoped("apiextensions.k8s.io", "customresourcedefinitions"),
		"SelfSubjectAccessReview":        clusterScoped("authorization.k8s.io", "selfsubjectaccessreviews"),
		"ValidatingWebhookConfiguration": clusterScoped("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
	}[kind]
}

func namespaced(group, name string) client.Resource {
	return client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Namespaced: true}
}

func clusterScoped(group, name string) client.Resource {
	found := namespaced(group, name)
	found.Namespaced = false
	return found
}

// request returns a request for an object of that kind, namespace and name.
func request(verb framework.Verb, kind, namespace, name string) framework.Request {
	return framework.Request{
		Verb: verb, Namespace: namespace, Name: name,
		Kind: schema.GroupVersionKind{Group: confinedResource(kind).Group, Version: "v1", Kind: kind},
	}
}

// with returns a create of an object.
func with(kind, name string) framework.Request {
	r := request(framework.VerbCreate, kind, "", name)
	r.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	return r
}

func TestAllowed(t *testing.T) {
	for name, r := range map[string]framework.Request{
		"own namespace":               request(framework.VerbCreate, "ConfigMap", own, "a"),
		"other namespace of it":       request(framework.VerbDelete, "ConfigMap", own+"-far", "a"),
		"collection in own namespace": request(framework.VerbDeleteCollection, "ConfigMap", own, ""),
		"own namespace as an object":  request(framework.VerbDelete, "Namespace", "", own),
		"creation of a namespace":     with("Namespace", own+"-far"),
		"review":                      with("SelfSubjectAccessReview", ""),
	} {
		t.Run(name, func(t *testing.T) {
			if err := Confine(own, confinedResource(r.Kind.Kind), r); err != nil {
				t.Errorf("%v, want it allowed", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const clusterScoped = "are in no namespace, so other clients can use the object or its name"
	raw := request(framework.VerbCreate, "Namespace", "", own)
	raw.HTTP.RawBody = []byte("metadata: {name: team-b}")
	dry := with("ClusterRole", own)
	dry.DryRun = true
	proxied := request(framework.VerbConnect, "Pod", own, "a")
	proxied.HTTP.ProxyPath = "/../../../../default/configmaps"
	for name, c := range map[string]struct {
		request framework.Request
		says    string
	}{
		"object of kube-system":           {request(framework.VerbCreate, "ConfigMap", "kube-system", "a"), "namespace kube-system does not belong to the scenario"},
		"object of another client":        {request(framework.VerbDelete, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"read in another namespace":       {request(framework.VerbGet, "ConfigMap", "team-b", "a"), "namespace team-b"},
		"every namespace":                 {request(framework.VerbList, "ConfigMap", "", ""), "all namespaces"},
		"namespace of another scenario":   {request(framework.VerbCreate, "ConfigMap", "at-x-00070", "a"), "namespace at-x-00070"},
		"longer ID":                       {request(framework.VerbCreate, "ConfigMap", own+"0", "a"), "namespace " + own + "0"},
		"system:discovery":                {request(framework.VerbDelete, "ClusterRole", "", "system:discovery"), clusterScoped},
		"own name":                        {with("ClusterRole", own), clusterScoped},
		"dry run":                         {dry, clusterScoped},
		"read":                            {request(framework.VerbGet, "ClusterRole", "", "admin"), clusterScoped},
		"rights":                          {with("ClusterRoleBinding", own), clusterScoped},
		"configuration":                   {with("ValidatingWebhookConfiguration", own), clusterScoped},
		"deletion of a namespace":         {request(framework.VerbDelete, "Namespace", "", "default"), clusterScoped},
		"creation of another namespace":   {with("Namespace", "team-b"), clusterScoped},
		"name of a namespace in raw body": {raw, clusterScoped},
		"all namespaces":                  {request(framework.VerbList, "Namespace", "", ""), clusterScoped},
		"collection":                      {request(framework.VerbDeleteCollection, "Namespace", "", ""), clusterScoped},
		"path in a name":                  {request(framework.VerbDelete, "ConfigMap", own, own+"/../../../namespaces/default"), "changes the URL path"},
		"path in a namespace":             {request(framework.VerbDelete, "ConfigMap", own+"/configmaps/../../default", "a"), "changes the URL path"},
		"path of a proxy":                 {proxied, "changes the URL path"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Confine(own, confinedResource(c.request.Kind.Kind), c.request)
			if !errors.Is(err, framework.ErrForeign) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an ErrForeign that says %q", err, c.says)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	converted := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook"}}}
	of := func(apiVersion, kind, name string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	}
	for name, test := range map[string]struct {
		manifest map[string]any
		says     string
	}{
		"namespaced":            {of("v1", "ConfigMap", "a"), ""},
		"configuration":         {of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a"), ""},
		"definition":            {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a"), ""},
		"own namespace":         {of("v1", "Namespace", own+"-far"), ""},
		"conversion webhook":    {converted, "garbage collection"},
		"namespace of others":   {of("v1", "Namespace", "team-b"), "in no namespace"},
		"cluster-scoped object": {of("rbac.authorization.k8s.io/v1", "ClusterRole", own), "in no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := test.manifest["kind"].(string)
			err := ConfineInstalled(own, confinedResource(kind), test.manifest)
			if (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, framework.ErrForeign) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
