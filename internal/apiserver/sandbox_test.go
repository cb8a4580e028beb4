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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

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
	return made.(*Sandbox)
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
