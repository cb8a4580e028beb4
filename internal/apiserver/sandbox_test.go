package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/testserver"
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
`

func manifests(t *testing.T, text string) []map[string]any {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// newTarget returns a target of a run, which is closed when the test ends.
func newTarget(t *testing.T, options Options) *Target {
	t.Helper()
	if options.Config == nil {
		options.Config = testserver.Config(t)
	}
	made, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return made
}

func newSandbox(t *testing.T, on *Target, options SandboxOptions) *Sandbox {
	t.Helper()
	made, err := on.NewSandbox(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// installAll installs manifests in their order and waits until they are effective.
func installAll(t *testing.T, on *Target, sandbox *Sandbox, text string, scripts map[string]hook.Script) {
	t.Helper()
	list := manifests(t, text)
	for _, manifest := range list {
		if err := sandbox.Install(t.Context(), manifest, scripts); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.WaitUntilEffective(t.Context(), list); err != nil {
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

func do(t *testing.T, on framework.Target, request framework.Request) framework.Result {
	t.Helper()
	result, err := on.Do(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// What is installed in a Sandbox decides about its own requests and about no others.
func TestIsolation(t *testing.T) {
	on := newTarget(t, Options{Config: testserver.Own(t), Run: "isolation"}) // what other clients create stays
	const id = "at-isolation-001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id})
	denied := false
	deny := hook.Script{Replies: []hook.Reply{{Allowed: &denied}}}
	installAll(t, on, sandbox, denyAll, map[string]hook.Script{"mutating.example.com": deny, "validating.example.com": deny})

	if got := do(t, sandbox, create("v1", "ConfigMap", id, "own")); got.Allowed() || len(got.Trace) == 0 {
		t.Errorf("create a ConfigMap of the scenario: got %d and %d calls, want it refused by a Hook", got.Status.Code, len(got.Trace))
	}
	recording := sandbox.Record()
	defer recording.Stop()
	for _, request := range []framework.Request{
		create("v1", "ConfigMap", "default", "other"),
		create("v1", "Namespace", "", "other"),
		create("scheduling.k8s.io/v1", "PriorityClass", "", "other"),
		create("authentication.k8s.io/v1", "TokenReview", "", ""),
		create("rbac.authorization.k8s.io/v1", "ClusterRole", "", "other"),
		{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind("scheduling.k8s.io/v1", "PriorityClass"), Name: "other"},
		{Verb: framework.VerbDeleteCollection, Kind: schema.FromAPIVersionAndKind("v1", "ConfigMap"), Namespace: "default"},
	} {
		if got := do(t, on, request); !got.Allowed() {
			t.Errorf("%s of another client: %d %s", request, got.Status.Code, got.Status.Message)
		}
	}
	if calls := recording.Calls(); len(calls) != 0 {
		t.Errorf("requests of another client reached a Hook: %v", calls.Webhooks())
	}
	if err := sandbox.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := on.WaitUntilEffective(t.Context(), manifests(t, denyAll)); err != nil {
		t.Fatal(err)
	}
	if got := do(t, sandbox, create("v1", "ConfigMap", id, "own")); !got.Allowed() {
		t.Errorf("create after Uninstall: %d %s", got.Status.Code, got.Status.Message)
	}
}

// The API server itself writes CustomResourceDefinitions. One that a Sandbox gives is shared, so its
// webhooks do not decide about it.
func TestSharedDefinitionIsOfNoSandbox(t *testing.T) {
	config := testserver.Own(t)
	on := newTarget(t, Options{Config: config, Run: "definition"})
	sandbox := newSandbox(t, on, SandboxOptions{ID: "at-definition-001"})
	definition := parsed(t, crd("definition.example.com", 9, 1))[0]
	if err := sandbox.Install(t.Context(), definition, nil); err != nil {
		t.Fatal(err)
	}
	denied := false
	deny := hook.Script{Replies: []hook.Reply{{Allowed: &denied}}}
	installAll(t, on, sandbox, denyAll, map[string]hook.Script{"mutating.example.com": deny, "validating.example.com": deny})
	annotated := framework.Request{
		Verb: framework.VerbPatch, Kind: schema.FromAPIVersionAndKind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), Name: "widgets.definition.example.com",
		HTTP: framework.HTTP{Patch: []byte(`{"metadata": {"annotations": {"a": "b"}}}`), PatchType: types.MergePatchType},
	}
	if got := do(t, on, annotated); !got.Allowed() {
		t.Errorf("a change by another client: %d %s", got.Status.Code, got.Status.Message)
	}
}

const watcher = `
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingWebhookConfiguration
  metadata: {name: watcher}
  webhooks:
  - name: watcher.example.com
    rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`

// A Result has the calls of its request; a Recording has the calls of several.
func TestDo(t *testing.T) {
	on := newTarget(t, Options{Run: "dotrace"})
	const id = "at-dotrace-001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id, Users: func(name string) bool { return name != "controller" }})
	broken := errors.New("broken")
	installAll(t, on, sandbox, watcher, map[string]hook.Script{"watcher.example.com": {Replies: []hook.Reply{
		{Warnings: []string{"first"}}, {}, {}, {}, {Meanwhile: func() error { return broken }}, {},
	}}})
	recording := sandbox.Record()
	defer recording.Stop()
	first := do(t, sandbox, create("v1", "ConfigMap", id, "a"))
	if !slices.Equal(first.Trace.Webhooks(), []string{"watcher.example.com"}) || !slices.Equal(first.Warnings, []string{"first"}) {
		t.Errorf("trace %v, warnings %v", first.Trace.Webhooks(), first.Warnings)
	}
	read := framework.Request{Verb: framework.VerbGet, Kind: schema.FromAPIVersionAndKind("v1", "ConfigMap"), Namespace: id, Name: "a"}
	if got := do(t, sandbox, read); len(got.Trace) != 0 || got.Fields()["kind"] != "ConfigMap" {
		t.Errorf("read: trace %v, object %v", got.Trace.Webhooks(), got.Object)
	}
	var both sync.WaitGroup
	for _, name := range []string{"b", "c"} {
		both.Go(func() {
			if got := do(t, sandbox, create("v1", "ConfigMap", id, name)); len(got.Trace) == 0 {
				t.Errorf("%s: no calls", name)
			}
		})
	}
	both.Wait()
	other := create("v1", "ConfigMap", id, "d")
	other.User = &framework.User{Name: "controller", Groups: []string{"system:masters"}}
	if got := do(t, sandbox, other); !got.Allowed() || len(got.Trace) != 0 {
		t.Errorf("request of another user: %d, %d calls; want it allowed without a call", got.Status.Code, len(got.Trace))
	}
	do(t, sandbox, create("v1", "ConfigMap", id, "e"))
	got, err := sandbox.Do(t.Context(), create("v1", "ConfigMap", id, "f"))
	if !errors.Is(err, broken) || !got.Allowed() || len(got.Trace) != 1 {
		t.Errorf("error in Meanwhile: %v, %d, %d calls; want the error and the Result", err, got.Status.Code, len(got.Trace))
	}
	if calls := recording.Calls(); len(calls) != 5 {
		t.Errorf("%d calls in all, want 5", len(calls))
	}
	if got := do(t, on, create("v1", "ConfigMap", id, "g")); got.Trace != nil {
		t.Errorf("trace outside of the Sandbox: %v, want nil", got.Trace)
	}
}

func TestCapabilities(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{HookAddress: hook.Address{Host: "10.0.0.7", Port: 9443}}, nil},
		{Options{HookAddress: hook.Address{Host: "10.0.0.7", Port: 9443}, HookService: true, Credentials: true}, []string{framework.CapabilityCredentials, framework.CapabilityHookService}},
		{Options{HookAddress: hook.Address{Host: "fd00::7", Port: 443}, HookService: true}, []string{framework.CapabilityDefaultPort}},
	} {
		t.Run(fmt.Sprint(c.want), func(t *testing.T) {
			if got := c.options.capabilities(); !slices.Equal(got, c.want) {
				t.Errorf("hooks at %v: got %v, want %v", c.options.HookAddress, got, c.want)
			}
		})
	}
	on := newTarget(t, Options{Run: "capable"})
	info := on.Info()
	if info.Kind != framework.TargetKubeconfig || info.Transport != framework.TransportURL || info.User != "admin" || len(info.FeatureGates) == 0 {
		t.Errorf("info: %+v", info)
	}
}

func TestCanCall(t *testing.T) {
	wrong, err := hook.Start(t.Context(), hook.Options{AdvertiseHost: "127.0.0.2"}) // it listens on 127.0.0.1
	if err != nil {
		t.Fatal(err)
	}
	right, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Config: testserver.Config(t), Run: "cancall"}
	for _, test := range []struct {
		servers []*hook.Server
		limit   time.Duration
		want    []bool
	}{
		{nil, time.Second, []bool{}},
		{[]*hook.Server{wrong}, time.Second, []bool{false}},
		{[]*hook.Server{wrong, right}, 20 * time.Second, []bool{false, true}},
	} {
		t.Run(fmt.Sprintf("%d servers", len(test.servers)), func(t *testing.T) {
			if got, err := CanCall(t.Context(), options, test.servers, test.limit); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
	left, err := Cleanup(t.Context(), options.Config, CleanupOptions{Run: options.Run})
	if err != nil || slices.ContainsFunc(left, func(one string) bool { return !strings.HasPrefix(one, "namespaces/") }) {
		t.Errorf("left %v, %v; want at most the namespace", left, err)
	}
}

func TestWaitForResponse(t *testing.T) {
	if err := WaitForResponse(t.Context(), testserver.Config(t), time.Minute); err != nil {
		t.Error(err)
	}
	if err := WaitForResponse(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, time.Minute); !errors.Is(err, framework.ErrNoResponse) {
		t.Errorf("got %v, want ErrNoResponse", err)
	}
}

func TestNewErrors(t *testing.T) {
	for want, options := range map[string]Options{
		"the rest.Config is nil":          {},
		"no response from the API server": {Config: &rest.Config{Host: "https://127.0.0.1:1"}},
		"use endpoint of a/b":             {Config: testserver.Config(t), Endpoints: map[string]framework.Endpoint{"a/b": {URL: "http://h"}}},
		"check the credentials":           {Config: &rest.Config{Host: testserver.Config(t).Host, TLSClientConfig: rest.TLSClientConfig{CAData: testserver.Config(t).CAData}, BearerToken: "wrong"}},
		"":                                {Config: &rest.Config{Host: "::"}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := New(t.Context(), options)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
