package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// installer returns an Installer of a run with its own Hook server.
func installer(t *testing.T, run string) *Installer {
	t.Helper()
	hooks, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Installer{
		Client: connect(t), Hooks: hooks, Run: run, ClientConfig: URLClientConfig, HookAddress: hooks.Address(),
	}
}

// installerThrough is installer with another transport.
func installerThrough(t *testing.T, run string, transport func(next http.RoundTripper) http.RoundTripper) *Installer {
	t.Helper()
	config := rest.CopyConfig(testserver.Config(t))
	config.Wrap(transport)
	i := installer(t, run)
	i.Client = connectTo(t, config)
	return i
}

func scope(t *testing.T, i *Installer, id string) *Scope {
	t.Helper()
	made, err := i.NewScope(t.Context(), id, hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(i.Uninstall(ctx, made), i.Client.Delete(ctx, client.Namespace(id))); err != nil {
			t.Error(err)
		}
	})
	return made
}

func manifest(apiVersion, kind, name string, fields map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range fields {
		out[key] = value
	}
	return out
}

func clusterRole(name string) map[string]any {
	return manifest("rbac.authorization.k8s.io/v1", "ClusterRole", name, nil)
}

func pod(name string) map[string]any {
	return manifest("v1", "Pod", name, map[string]any{"spec": map[string]any{
		"automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "c", "image": "i"}},
	}})
}

func get(t *testing.T, c *client.Client, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	res, err := c.Resources.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	return c.Get(t.Context(), client.Object{Resource: res, Namespace: namespace, Name: name})
}

func TestInstall(t *testing.T) {
	i := installer(t, "install")
	s := scope(t, i, "at-install-001")
	ctx := t.Context()
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, value := range []string{"first", "second"} { // the second replaces the first
		if err := i.Install(ctx, s, manifest("v1", "ConfigMap", "a", map[string]any{"data": map[string]any{"a": value}}), nil); err != nil {
			t.Fatal(err)
		}
	}
	found, err := get(t, i.Client, configMap, s.ID, "a")
	if value, _, _ := unstructured.NestedString(found.Object, "data", "a"); err != nil || value != "second" {
		t.Errorf("ConfigMap: %v, %v; want the second value", found, err)
	}

	// A webhook without clientConfig becomes a Hook, with defaults.
	configuration := webhookConfiguration(map[string]any{"name": "w.example.com", "rules": []any{rule("configmaps")}})
	if err := i.Install(ctx, s, configuration, nil); err != nil {
		t.Fatal(err)
	}
	found, err = get(t, i.Client, kind(KindMutatingWebhooks), "", "at-install-001-a")
	if err != nil {
		t.Fatal(err)
	}
	webhook := firstWebhook(found.Object)
	clientConfig, _ := webhook["clientConfig"].(map[string]any)
	if url, _ := clientConfig["url"].(string); !strings.HasSuffix(url, "/at-install-001/a/w.example.com") || clientConfig["caBundle"] == nil || webhook["sideEffects"] != "None" {
		t.Errorf("webhook: %v", webhook)
	}
	if labels := found.GetLabels(); labels[RunLabel] != "install" || labels[ScenarioLabel] != s.ID {
		t.Errorf("labels: %v", labels)
	}
	if err := i.Delete(ctx, s, kind(KindMutatingWebhooks), "a"); err != nil {
		t.Error(err)
	}
	if _, err := get(t, i.Client, kind(KindMutatingWebhooks), "", "at-install-001-a"); !apierrors.IsNotFound(err) {
		t.Errorf("configuration after its delete: %v, want NotFound", err)
	}
	if err := i.Uninstall(ctx, s); err != nil {
		t.Errorf("uninstall what is deleted: %v", err)
	}
}

// updates is a transport that counts updates.
type updates struct {
	next http.RoundTripper
	sent int
}

func (u *updates) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPut {
		u.sent++
	}
	return u.next.RoundTrip(request)
}

// A replaced webhook configuration is changed twice: a kube-apiserver can lose one change.
func TestReplacedConfigurationIsChangedAgain(t *testing.T) {
	var counted updates
	i := installerThrough(t, "again", func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return &counted
	})
	s := scope(t, i, "at-again-001")
	for timeout := int64(1); timeout <= 3; timeout++ {
		in := webhookConfiguration(map[string]any{"name": "a.example.com", "timeoutSeconds": timeout, "rules": []any{rule("configmaps")}})
		if err := i.Install(t.Context(), s, in, nil); err != nil {
			t.Fatal(err)
		}
		found, err := get(t, i.Client, kind(KindMutatingWebhooks), "", "at-again-001-a")
		if err != nil {
			t.Fatal(err)
		}
		got, changes := firstWebhook(found.Object)["timeoutSeconds"], 2*int(timeout-1)
		if got != timeout || counted.sent != changes {
			t.Errorf("timeoutSeconds = %v after %d updates, want %d after %d", got, counted.sent, timeout, changes)
		}
	}
}

// faults is a transport that fails once for a request with a method.
type faults struct {
	next   http.RoundTripper
	method string
	lost   bool // the API server handles the request; else it refuses it with 503
}

func (f *faults) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != f.method {
		return f.next.RoundTrip(request)
	}
	f.method = ""
	if !f.lost {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: request}, nil
	}
	response, err := f.next.RoundTrip(request)
	if err == nil {
		err = errors.Join(io.ErrUnexpectedEOF, response.Body.Close())
	}
	return nil, err
}

// An object is replaced, also if a request is repeated.
func TestReplaceAfterFaults(t *testing.T) {
	var fault faults
	i := installerThrough(t, "replace", func(next http.RoundTripper) http.RoundTripper {
		fault.next = next
		return &fault
	})
	i.DefaultAccounts = true // for Pods
	s := scope(t, i, "at-replace-001")
	if err := i.DefaultAccount(t.Context(), s, s.ID); err != nil {
		t.Fatal(err)
	}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for n, test := range []faults{
		{method: http.MethodPost}, {method: http.MethodPost, lost: true},
		{method: http.MethodPut}, {method: http.MethodPut, lost: true},
	} {
		t.Run(fmt.Sprintf("%s lost %t", test.method, test.lost), func(t *testing.T) {
			name := fmt.Sprintf("a%d", n)
			for _, value := range []string{"first", "second"} {
				if err := i.Install(t.Context(), s, manifest("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"a": value}}), nil); err != nil {
					t.Fatalf("%s, %+v: %v", value, test, err)
				}
				fault.method, fault.lost = test.method, test.lost
			}
			found, err := get(t, i.Client, configMap, s.ID, name)
			if value, _, _ := unstructured.NestedString(found.Object, "data", "a"); err != nil || value != "second" {
				t.Errorf("%s %+v: %v, %v; want the second value", name, test, found, err)
			}
			fault.method = test.method // a Pod cannot be replaced
			if err := i.Install(t.Context(), s, pod(name), nil); err != nil {
				t.Errorf("%+v: create a Pod: %v", test, err)
			}
			fault.method = ""
		})
	}
}

// The ServiceAccount default can be created with the namespace, so that Pods can be created, and a
// scenario can give it too.
func TestDefaultAccount(t *testing.T) {
	run := runid.New() // the namespaces stay
	i := installer(t, run)
	i.DefaultAccounts = true
	s := scope(t, i, runid.Scenario(run, 1))
	if err := i.DefaultAccount(t.Context(), s, s.ID); err != nil {
		t.Fatal(err)
	}
	res, err := i.Client.Resources.Of(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	if err != nil {
		t.Fatal(err)
	}
	account := client.Object{Resource: res, Namespace: s.ID, Name: "default"}
	if _, err := i.Client.Get(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	given := manifest("v1", "ServiceAccount", "default", map[string]any{"automountServiceAccountToken": false})
	if err := i.Install(t.Context(), s, given, nil); err != nil {
		t.Errorf("install the ServiceAccount that exists: %v", err)
	}
	if got, err := i.Client.Get(t.Context(), account); err != nil || got.Object["automountServiceAccountToken"] != false {
		t.Errorf("got %v, %v; want that of the scenario", got, err)
	}
	account.Namespace = s.ID + "-other"
	if err := i.Install(t.Context(), s, manifest("v1", "Namespace", account.Namespace, nil), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Client.Get(t.Context(), account); err != nil {
		t.Errorf("another namespace of the scenario: %v", err)
	}
	if err := i.Client.Delete(t.Context(), client.Namespace(account.Namespace)); err != nil {
		t.Error(err)
	}
}

// What belongs to other clients is not touched.
func TestInstallRefuses(t *testing.T) {
	i := installer(t, "refuses")
	s := scope(t, i, "at-refuses-001")
	ctx := t.Context()
	foreign := clusterRole("foreign")
	roles, err := i.Client.Resources.Of(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Client.Create(ctx, client.Object{Resource: roles, Name: "foreign"}, foreign); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		manifest map[string]any
		want     string
	}{
		"cluster-scoped object of another client": {foreign, "this run did not create: use another name"},
		"namespace of another client":             {manifest("v1", "Secret", "s", map[string]any{"metadata": map[string]any{"name": "s", "namespace": "default"}}), "namespace default does not belong to the scenario"},
		"no kind":                                 {map[string]any{"apiVersion": "v1"}, "no apiVersion or no kind"},
		"kind that is not served":                 {manifest("example.com/v1", "Widget", "w", nil), "does not serve"},
		"webhook that is a string":                {map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": KindMutatingWebhooks, "metadata": map[string]any{"name": "a"}, "webhooks": []any{"w"}}, "webhook is string, want a map"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := i.Install(ctx, s, test.manifest, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A CustomResourceDefinition that several scenarios give is installed once. What a scenario installs whose name does not
// have the ID of the run is removed after it.
func TestInstallShared(t *testing.T) {
	i := installer(t, "shared")
	one, two := scope(t, i, "at-shared-001"), scope(t, i, "at-shared-002")
	definition := func(scope string) map[string]any {
		return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gizmos.shared.example.com", map[string]any{"spec": map[string]any{
			"group": "shared.example.com", "scope": scope, "names": map[string]any{"plural": "gizmos", "kind": "Gizmo"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		}})
	}
	var all sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		all.Go(func() { errs[n] = i.Install(t.Context(), []*Scope{one, two}[n%2], definition("Namespaced"), nil) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	first, err := get(t, i.Client, kind, "", "gizmos.shared.example.com")
	if err != nil || first.GetLabels() != nil {
		t.Fatalf("got %v, %v, want it without labels", first, err)
	}
	two.Open = true // alone
	if err := errors.Join(i.Install(t.Context(), two, definition("Namespaced"), nil), i.RemoveStored(t.Context(), one)); err != nil {
		t.Error(err)
	}
	for name, test := range map[string]struct {
		name string
		left bool
	}{"of any name": {"shared-role", false}, "with the ID": {"role-at-shared-002", true}} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(i.Install(t.Context(), two, clusterRole(test.name), nil), i.RemoveStored(t.Context(), two)); err != nil {
				t.Error(err)
			}
			if _, err := get(t, i.Client, schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "", test.name); (err == nil) != test.left || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("after its scenario: %v, want it there: %t", err, test.left)
			}
		})
	}
	if err := i.Client.Delete(t.Context(), client.Object{Resource: client.Resource{GroupVersionResource: kind.GroupVersion().WithResource("customresourcedefinitions")}, Name: "gizmos.shared.example.com"}); err != nil {
		t.Error(err)
	}
}
