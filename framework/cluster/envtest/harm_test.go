package envtest_test

import (
	"net/http"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// denyAll are configurations and a policy that refuse everything they match.
const denyAll = `
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingWebhookConfiguration
  metadata: {name: everything}
  webhooks:
  - name: mutating.example.com
    rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingWebhookConfiguration
  metadata: {name: everything}
  webhooks:
  - name: validating.example.com
    rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: everything}
  spec:
    matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]}
    validations: [{expression: "false"}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: everything}
  spec: {policyName: everything, validationActions: [Deny]}
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  metadata: {name: at-left-001-class}
  value: 1
- {apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/held]}}
`

func start(t *testing.T) *envtest.Server {
	t.Helper()
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	server, err := envtest.Start(t.Context(), envtest.Options{Assets: found})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func target(t *testing.T, config *rest.Config, run string) *cluster.Target {
	t.Helper()
	made, err := cluster.New(t.Context(), cluster.Options{Config: config, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func install(t *testing.T, on *cluster.Target, id string) {
	t.Helper()
	var manifests []map[string]any
	if err := yaml.Unmarshal([]byte(denyAll), &manifests); err != nil {
		t.Fatal(err)
	}
	if err := on.Open(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	denied := false
	deny := hook.Script{Replies: []hook.Reply{{Allowed: &denied}}}
	scripts := map[string]hook.Script{"mutating.example.com": deny, "validating.example.com": deny}
	for i := len(manifests) - 1; i >= 0; i-- { // what decides comes last
		if err := on.Put(t.Context(), id, manifests[i], scripts); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.Settle(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
}

func create(apiVersion, kind, namespace, name string) framework.Request {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	switch kind {
	case "PriorityClass":
		object.Object["value"] = int64(1)
	case "TokenReview":
		object.Object["spec"] = map[string]any{"token": "x"}
	}
	return framework.Request{
		Verb: framework.VerbCreate, Kind: schema.FromAPIVersionAndKind(apiVersion, kind),
		Namespace: namespace, Name: name, Object: object,
	}
}

// What a scenario installs decides about its own requests and about nobody
// else's; and what a killed run leaves is removed, finalizers or not.
func TestHarmAndCleanup(t *testing.T) {
	server := start(t)
	left := target(t, server.Config, "left")
	const id = "at-left-001"
	install(t, left, id)

	own := []framework.Request{
		create("v1", "ConfigMap", id, "own"),
		create("scheduling.k8s.io/v1", "PriorityClass", "", id+"-own"),
	}
	for _, request := range own {
		if got := do(t, left, request); got.Allowed() || len(left.Calls(id)) == 0 {
			t.Errorf("create %s of the scenario: got %d and %d calls, want it refused by a Hook", request.Kind.Kind, got.Status.Code, len(left.Calls(id)))
		}
		left.Mark(id)
	}
	others := []framework.Request{
		create("v1", "ConfigMap", "default", "other"),
		create("v1", "Namespace", "", "other"),
		create("scheduling.k8s.io/v1", "PriorityClass", "", "other"),
		create("authentication.k8s.io/v1", "TokenReview", "", ""),
		create("rbac.authorization.k8s.io/v1", "ClusterRole", "", "other"),
		{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind("scheduling.k8s.io/v1", "PriorityClass"), Name: "other"},
		{Verb: framework.VerbDeleteCollection, Kind: schema.FromAPIVersionAndKind("v1", "ConfigMap"), Namespace: "default"},
	}
	for _, request := range others {
		if got := do(t, left, request); !got.Allowed() {
			t.Errorf("%s %s of somebody else: %d %s", request.Verb, request.Kind.Kind, got.Status.Code, got.Status.Message)
		}
		if calls := left.Calls(id); len(calls) != 0 {
			t.Errorf("%s %s of somebody else reached a Hook: %v", request.Verb, request.Kind.Kind, framework.Trace(calls).Webhooks())
			left.Mark(id)
		}
	}

	// "other" of the others is nobody's to give.
	foreign := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "other"}}
	if err := left.Put(t.Context(), id, foreign, nil); err == nil {
		t.Error("put a ClusterRole that somebody else has: no error")
	}
	elsewhere := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "default"}}
	if err := left.Put(t.Context(), id, elsewhere, nil); err == nil {
		t.Error("put a Secret in somebody else's namespace: no error")
	}

	unconverted(t, left, id)
	// The process that made all this is taken to be dead: nothing is closed.
	removed, err := cluster.Cleanup(t.Context(), cluster.Options{Config: server.Config}, "left")
	if err != nil {
		t.Fatal(err)
	}
	if len(removed) < 6 {
		t.Errorf("cleanup found %v, want the configurations, the policy, the class and the namespaces", removed)
	}
	orphaned(t, left)
	again, err := cluster.Cleanup(t.Context(), cluster.Options{Config: server.Config}, "left")
	if err != nil || len(again) != 1 || again[0] != "namespaces/at-left-009" {
		t.Errorf("cleanup found %v, %v; want the namespace that was gone and had an object", again, err)
	}
	held := framework.Request{Verb: framework.VerbGet, Kind: schema.FromAPIVersionAndKind("v1", "ConfigMap"), Namespace: "at-left-009", Name: "held"}
	if got := do(t, left, held); got.Status.Code != http.StatusNotFound {
		t.Errorf("get the ConfigMap whose namespace was gone: %d; want 404", got.Status.Code)
	}
	held.Namespace = "at-other-001"
	if got := do(t, left, held); !got.Allowed() {
		t.Errorf("get somebody else's ConfigMap: %d", got.Status.Code)
	}
	again, err = cluster.Cleanup(t.Context(), cluster.Options{Config: server.Config}, "")
	if err != nil || len(again) != 0 {
		t.Errorf("a second cleanup found %v, %v; want nothing", again, err)
	}
	if got := do(t, left, framework.Request{Verb: framework.VerbGet, Kind: schema.FromAPIVersionAndKind("rbac.authorization.k8s.io/v1", "ClusterRole"), Name: "other"}); !got.Allowed() {
		t.Errorf("get the ClusterRole of somebody else after cleanup: %d", got.Status.Code)
	}
	if got := do(t, left, framework.Request{Verb: framework.VerbGet, Kind: schema.FromAPIVersionAndKind("v1", "Namespace"), Name: id}); got.Status.Code != http.StatusNotFound {
		t.Errorf("get the scenario's namespace: %d, want 404", got.Status.Code)
	}
}

func do(t *testing.T, on *cluster.Target, request framework.Request) framework.Result {
	t.Helper()
	result, err := on.Do(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// orphaned leaves an object in a namespace of the run that is gone, as a scenario
// about missing namespaces does that is killed, and one in somebody else's.
func orphaned(t *testing.T, on *cluster.Target) {
	t.Helper()
	const id, other = "at-left-009", "at-other-001"
	for _, namespace := range []string{id, other} {
		held := create("v1", "ConfigMap", namespace, "held")
		held.Object.(*unstructured.Unstructured).SetFinalizers([]string{"example.com/held"})
		for _, request := range []framework.Request{create("v1", "Namespace", "", namespace), held} {
			if got := do(t, on, request); !got.Allowed() {
				t.Fatal(got.Status.Message)
			}
		}
	}
	gone := framework.Request{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind("v1", "Namespace"), Name: id}
	finalize := create("v1", "Namespace", "", id)
	finalize.Verb, finalize.Subresource = framework.VerbUpdate, "finalize"
	for _, request := range []framework.Request{gone, finalize} {
		if got := do(t, on, request); !got.Allowed() {
			t.Fatal(got.Status.Message)
		}
	}
}

// unconverted leaves a custom resource that cannot be read in one of its versions,
// for the process that converted it is dead.
func unconverted(t *testing.T, on *cluster.Target, id string) {
	t.Helper()
	schemaless := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": schemaless}
	}
	const group = "left.example.com"
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
			"versions": []any{version("v1", true), version("v2", false)},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1"},
			}},
		},
	}
	if err := on.Put(t.Context(), id, crd, nil); err != nil {
		t.Fatal(err)
	}
	// A namespace without policies of the scenario's.
	const other = "at-left-008"
	if err := on.Open(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := do(t, on, create(group+"/v1", "Gadget", other, "subject")); !got.Allowed() {
		t.Fatal(got.Status.Message)
	}
	list := framework.Request{Verb: framework.VerbList, Kind: schema.FromAPIVersionAndKind(group+"/v2", "Gadget"), Namespace: other}
	if got := do(t, on, list); got.Status.Code != http.StatusInternalServerError {
		t.Errorf("list what nobody converts: %d, want 500", got.Status.Code)
	}
}
