package apiserver

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
)

// readsParam is a policy that names its parameter in a warning. Every kube-apiserver watches ResourceQuotas.
const readsParam = `
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: p}
  spec:
    paramKind: {apiVersion: v1, kind: ResourceQuota}
    matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases]}]}
    validations: [{expression: "false", messageExpression: "'value ' + params.metadata.annotations.value"}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: p}
  spec: {policyName: p, validationActions: [Warn], paramRef: {selector: {}, parameterNotFoundAction: Allow}}
`

// decided waits for the parameters, and returns which values a policy has then.
func decided(t *testing.T, sandbox *Sandbox, namespace string) string {
	t.Helper()
	if err := sandbox.WaitForParams(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := create("coordination.k8s.io/v1", "Lease", namespace, "subject")
	request.DryRun = true
	var values []string
	for _, warning := range do(t, sandbox, request).Warnings {
		_, value, _ := strings.Cut(warning, ": value ")
		values = append(values, value)
	}
	return strings.Join(values, " ")
}

// pending reports whether the next step waits for parameters.
func pending(sandbox *Sandbox) bool {
	sandbox.mu.Lock()
	defer sandbox.mu.Unlock()
	for _, writes := range sandbox.params {
		if writes > 0 {
			return true
		}
	}
	return false
}

// After each write of a parameter, in whatever way, a policy decides by it at once.
func TestWaitForParams(t *testing.T) {
	on := newTarget(t, Options{Run: "params"})
	const id = "at-params-001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id})
	installAll(t, on, sandbox, readsParam, nil)
	quota := schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}
	if got := decided(t, sandbox, id); got != "" {
		t.Errorf("without a parameter: got %q", got)
	}
	annotated := func(value string) framework.Request {
		request := create("v1", "ResourceQuota", id, "limit")
		request.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "limit", "annotations": map[string]any{"value": value}}, "spec": map[string]any{}}}
		return request
	}
	patch := framework.Request{Verb: framework.VerbPatch, Kind: quota, Namespace: id, Name: "limit", HTTP: framework.HTTP{PatchType: types.MergePatchType, RawBody: []byte(`{"metadata":{"annotations":{"value":"patched"}}}`)}}
	dryRun := patch
	dryRun.DryRun, dryRun.HTTP.RawBody = true, []byte(`{"metadata":{"annotations":{"value":"not stored"}}}`)
	for _, step := range []struct {
		name    string
		request framework.Request
		want    string
	}{
		{"created", annotated("created"), "created"},
		{"patched", patch, "patched"},
		{"dry run", dryRun, "patched"},
		{"deleted", framework.Request{Verb: framework.VerbDelete, Kind: quota, Namespace: id, Name: "limit"}, ""},
		{"again", annotated("again"), "again"},
		{"collection", framework.Request{Verb: framework.VerbDeleteCollection, Kind: quota, Namespace: id}, ""},
	} {
		if got := do(t, sandbox, step.request); !got.Allowed() {
			t.Fatalf("%s: %s", step.name, got.Status.Message)
		}
		if got, want := pending(sandbox), step.name != "dry run"; got != want {
			t.Errorf("%s: the next step waits for the parameter: %t, want %t", step.name, got, want)
		}
		if got := decided(t, sandbox, id); got != step.want {
			t.Errorf("%s: the policy has %q, want %q", step.name, got, step.want)
		}
	}
	for _, value := range []string{"installed", "replaced"} {
		if err := sandbox.Install(t.Context(), manifests(t, `[{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit, annotations: {value: `+value+`}}, spec: {}}]`)[0], nil); err != nil {
			t.Fatal(err)
		}
		if !pending(sandbox) {
			t.Errorf("%s: the next step does not wait for the parameter", value)
		}
		if got := decided(t, sandbox, id); got != value {
			t.Errorf("the policy has %q, want %q", got, value)
		}
	}
	if err := sandbox.Delete(t.Context(), quota, "limit"); err != nil {
		t.Fatal(err)
	}
	if !pending(sandbox) {
		t.Error("after Delete the next step does not wait for the parameter")
	}
	if got := decided(t, sandbox, id); got != "" {
		t.Errorf("after Delete the policy has %q", got)
	}
}

// A policy of the whole run reads the parameters of each Sandbox.
func TestParamsOfTheRun(t *testing.T) {
	on := newTarget(t, Options{Run: "paramsofrun"})
	installed := manifests(t, readsParam)
	if err := on.InstallForRun(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	if err := on.WaitUntilEffective(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"at-paramsofrun-00001", "at-paramsofrun-00002"} {
		sandbox := newSandbox(t, on, SandboxOptions{ID: id})
		param := manifests(t, `[{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit, annotations: {value: of `+id+`}}, spec: {}}]`)[0]
		if err := sandbox.Install(t.Context(), param, nil); err != nil {
			t.Fatal(err)
		}
		if got := decided(t, sandbox, id); got != "of "+id {
			t.Errorf("the policy has %q", got)
		}
	}
}

// A kind whose definition is new becomes known to policies. The wait for that can be long.
func TestParamsOfANewKind(t *testing.T) {
	on := newTarget(t, Options{Run: "newkind"})
	const id = "at-newkind-001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id})
	installAll(t, on, sandbox, readsParam, nil) // the API server lists the kinds now
	if got := decided(t, sandbox, id); got != "" {
		t.Errorf("got %q", got)
	}
	installAll(t, on, sandbox, `
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: limits.newkind.example.com}
  spec:
    group: newkind.example.com
    scope: Namespaced
    names: {plural: limits, singular: limit, kind: Limit, listKind: LimitList}
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
- {apiVersion: newkind.example.com/v1, kind: Limit, metadata: {name: at-newkind-001-a, annotations: {value: new}}}
`+strings.NewReplacer("apiVersion: v1, kind: ResourceQuota", "apiVersion: newkind.example.com/v1, kind: Limit", "name: p", "name: q", "policyName: p", "policyName: q").Replace(readsParam), nil)
	if got := decided(t, sandbox, id); got != "new" {
		t.Errorf("the policy has %q, want new", got)
	}
}
