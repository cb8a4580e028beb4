package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/object"
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

const (
	claimManifest     = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}`
	podManifest       = `{apiVersion: v1, kind: Pod, metadata: {name: %s, finalizers: [example.com/wait], deletionTimestamp: "2024-05-05T10:00:00Z"}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: i, resources: {limits: {cpu: 1000m}}, securityContext: {}}]}, status: {phase: Running, podIP: 10.0.0.1}}`
	nodeManifest      = `{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: {taints: [{key: a, effect: NoSchedule}]}, status: {capacity: {cpu: "4"}, nodeInfo: {kubeletVersion: v1.36.0, operatingSystem: linux}}}`
	deployManifest    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, generation: 1, creationTimestamp: null}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}, status: {replicas: 3, observedGeneration: 1}}`
	namespaceManifest = `{apiVersion: v1, kind: Namespace, metadata: {name: %s, deletionTimestamp: "2024-05-05T10:00:00Z"}, status: {phase: Terminating}}`
	volumeManifest    = `{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/x}}, status: {phase: Released}}`
	secretManifest    = `{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {a: b}}`
	statusCRD         = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.complete.example.com}, spec: {group: complete.example.com, scope: Cluster, names: {plural: %[1]ss, kind: %[2]s}, versions: [{name: v1, served: true, storage: true, %[3]s schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
)

// csr is a request for a certificate.
const csr = `LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ1VUQ0NBVGtDQVFBd0RERUtNQWdHQTFVRUF3d0JZVENDQVNJd0RRWUpLb1pJaHZjTkFRRUJCUUFEZ2dFUApBRENDQVFvQ2dnRUJBTUpMZjhwMG1yb1hPTG5OK0gwS25YRXo3U0laNlEyVEVGVVRTRkdUd1lZR3RpN3ZtczVmCkV6Nm5jMnc2bEdXemk5UkwybER4Ky9Pa3RwdXhoYS9SUVVMZjhtaW81ems4S1k4c0hDcnZWaGkwZGNOd1hYRmUKMXE3UFYvMXduZkd0UG1EZ2wzajg3K2p5OEZoNDJxZ0RUYm84R0dBR0ZTZVVzWXphdWRMK0NMMHdiMzdic1pDSQpHd1NnV1ByOExCK3VpVWE0eHV5LzRZOXRSa1ViamYxcmorQ3ltK2w3dnRDY0h1alV0aytUdFcvNHZIeGhoVVdmCm9HMDl6VzU0TFozNVQyUFAzYzNUT0NLODBtc2R1SDJTYmtBR2VGbUpFU3hEVGxtZE1JYUZKbW1va2hzc29ZT08KVmtGbzNGL3pvbVJTMUZqZDRUdXZiVlpXUWVYWkFORWNLSTBDQXdFQUFhQUFNQTBHQ1NxR1NJYjNEUUVCQ3dVQQpBNElCQVFBblFQY3kvRkZwVUQwejBCN2ZDTGMyTGx5WTB6T0ZTVTh4KzRlMTdSOTJHRWlQU05kZzVnK2FmeDJvClJpaUNuZmpJZ2ZqK3lQeEpaNDQ0L2VVd01MT2tJZ3FOd1pJWTJubjZnOTJRMk15c2ZkVTliTllLUU9hb0J6dTEKc243ME9ZbWNaNW9yOXR4S3YrVi8yTVo2K21ZNzc3d2VQcXUrYWdmMWw5ZlkvRk8zZFF5RGtlTGh3aGNka1pPRAptL3dxVk4yMm1Cd1NteWdJQVhqS1g4QkJtTTdZNnM1V0VpbFVERngveUNuWk9HWnBhY3l4eHpIdUhmNFBwM2VXCnZYUmh5MHlWOG4zaHdCOGoyQ3kwT0dCQVJBL0l1U0srcXNQZ0xkQXNoYlRBK0lDZWtWSTkxVXQvaHpsVVhUa0sKV28wOVJ1ZXB5b0FUckdFckYvSThwR2ZQVnJyNAotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K`

func fromYAML(t *testing.T, format string, arguments ...any) map[string]any {
	t.Helper()
	var manifest map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, arguments...), &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest
}

// What is stored is what the manifest says, although an API server ignores a status and a
// deletionTimestamp in a create.
func TestComplete(t *testing.T) {
	i := installer(t, "complete")
	s := scope(t, i, "at-complete-001")
	i.DefaultAccounts = true
	if err := i.DefaultAccount(t.Context(), s, s.ID); err != nil {
		t.Fatal(err)
	}
	for name, subresources := range map[string]string{"full": "subresources: {status: {}},", "plain": ""} {
		if err := i.Install(t.Context(), s, fromYAML(t, statusCRD, name, map[string]string{"full": "Full", "plain": "Plain"}[name], subresources), nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, format := range []string{
		claimManifest, podManifest, nodeManifest, deployManifest, namespaceManifest, volumeManifest, secretManifest,
		`{apiVersion: complete.example.com/v1, kind: Full, metadata: {name: %s}, spec: {a: 1}, status: {ready: true, at: "1m"}}`,
		`{apiVersion: complete.example.com/v1, kind: Plain, metadata: {name: %s}, spec: {a: 1}, status: {ready: true}}`,
	} {
		name := fmt.Sprintf("at-complete-001-%d", n)
		manifest := fromYAML(t, format, name)
		t.Run(fmt.Sprint(manifest["kind"]), func(t *testing.T) {
			if err := i.Install(t.Context(), s, manifest, nil); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			kind, _ := object.Kind(manifest)
			res, _ := i.Client.Resources.Of(kind)
			namespace := ""
			if res.Namespaced {
				namespace = s.ID
			}
			stored, err := get(t, i.Client, kind, namespace, name)
			if err != nil {
				t.Fatal(err)
			}
			if lost := lostFields(manifest, stored.Object); lost != nil {
				t.Errorf("%s: %s is %v", format, lost.path, lost.stored)
			}
			deleted := slices.Contains([]string{podManifest, namespaceManifest}, format)
			if (stored.GetDeletionTimestamp() != nil) != deleted {
				t.Errorf("%s: deletionTimestamp is %v, want one: %t", format, stored.GetDeletionTimestamp(), deleted)
			}
			if stored.GetLabels() != nil && kind.Kind != "Namespace" {
				t.Errorf("%s: got labels %v, want none", format, stored.GetLabels())
			}
		})
	}
}

// A field that an API server does not keep is an error that names it.
func TestLostField(t *testing.T) {
	i := installer(t, "lost")
	s := scope(t, i, "at-lost-001")
	for field, format := range map[string]string{
		"metadata.deletionTimestamp":        `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: "2024-05-05T10:00:00Z"}}`,
		"metadata.uid":                      `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: 11111111-2222-3333-4444-555555555555}}`,
		"metadata.creationTimestamp":        `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, creationTimestamp: "2024-05-05T10:00:00Z"}}`,
		"metadata.generation":               `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 7}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		"metadata.managedFields[0].manager": `{apiVersion: v1, kind: ConfigMap, metadata: {name: e, managedFields: [{manager: kubectl, operation: Update, apiVersion: v1, time: "2024-05-05T10:00:00Z", fieldsType: FieldsV1, fieldsV1: {}}]}, data: {a: b}}`,
		"spec.username":                     `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: at-lost-001-f}, spec: {username: jane, signerName: example.com/a, usages: [client auth], request: ` + csr + `}}`,
	} {
		t.Run(field, func(t *testing.T) {
			err := i.Install(t.Context(), s, fromYAML(t, "%s", format), nil)
			lost := (*framework.ManifestError)(nil)
			if !errors.As(err, &lost) || lost.Field != field {
				t.Errorf("got %v, want an error about the field", err)
			}
		})
	}
}

// What policies can read as parameters: their kinds, in the namespaces of the scenario, of its requests and of bindings.
func TestParams(t *testing.T) {
	t.Parallel()
	verbs := metav1.Verbs{"list", "delete"}
	resources := client.NewResources()
	resources.Add(
		&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}, {Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs},
		}},
		&metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "limits", Kind: "Limit", Verbs: verbs}}},
		&metav1.APIResourceList{GroupVersion: "authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "reviews", Kind: "Review"}}},
	)
	policy := func(apiVersion, kind string) map[string]any {
		return map[string]any{"spec": map[string]any{"paramKind": map[string]any{"apiVersion": apiVersion, "kind": kind}}}
	}
	binding := func(ref map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"policyName": "maps", "paramRef": ref}}
	}
	i := &Installer{Client: &client.Client{Resources: resources}, Run: "r", Shared: true}
	i.project = &Scope{ID: "at-r-installed", given: []given{{kind: KindMutatingPolicy, name: "limits", manifest: policy("example.com/v1", "Limit")}}}
	scope := &Scope{ID: "at-r-001", namespaces: []string{"at-r-001-second"},
		Requests: []framework.Request{{Namespace: "at-r-001"}, {Namespace: "default"}, {Namespace: "$(steps.a.name)"}},
		given: []given{
			{kind: KindValidatingPolicy, name: "maps", manifest: policy("v1", "ConfigMap")},
			{kind: KindValidatingPolicy, name: "unknown", manifest: policy("example.com/v1", "Nothing")},
			{kind: KindValidatingPolicy, name: "unlisted", manifest: policy("authorization.k8s.io/v1", "Review")},
			{kind: KindValidatingPolicy, name: "without", manifest: map[string]any{"spec": map[string]any{}}},
			{kind: KindValidatingBinding, name: "there", manifest: binding(map[string]any{"name": "absent", "namespace": "at-r-001-other"})},
			{kind: KindValidatingBinding, name: "foreign", manifest: binding(map[string]any{"name": "absent", "namespace": "kube-system"})},
			{kind: KindValidatingBinding, name: "selected", manifest: binding(map[string]any{"selector": map[string]any{}})},
		},
	}
	maps := []string{"ValidatingAdmissionPolicy ConfigMap at-r-001", "ValidatingAdmissionPolicy ConfigMap at-r-001-other", "ValidatingAdmissionPolicy ConfigMap at-r-001-second"}
	for shared, want := range map[bool][]string{true: maps, false: append(maps, "ValidatingAdmissionPolicy ConfigMap default", "ValidatingAdmissionPolicy ConfigMap kube-system")} {
		i.Shared = shared
		var got []string
		for _, p := range i.Params(scope) {
			got = append(got, p.Policy+" "+p.Kind.Kind+" "+p.Namespace)
		}
		slices.Sort(got)
		if diff := cmp.Diff(append([]string{"MutatingAdmissionPolicy Limit "}, want...), got); diff != "" {
			t.Errorf("shared %t: -want +got\n%s", shared, diff)
		}
	}
}
