package apiserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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

// request returns a request for an object of a manifest.
func requestOf(verb framework.Verb, manifest map[string]any) framework.Request {
	object := &unstructured.Unstructured{Object: manifest}
	return framework.Request{
		Verb: verb, Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Object: object,
	}
}

// A tenant shares the API server with a run whose scenario tries to change what is the
// tenant's.
func TestScenarioIsConfined(t *testing.T) {
	ctx := t.Context()
	tenants, err := kubernetes.NewForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenants-role"}}
	_, err = tenants.CoreV1().ConfigMaps("tenant-a").Create(ctx, theirs, metav1.CreateOptions{})
	if _, failed := tenants.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}

	on, err := New(ctx, Options{Config: testserver.Config(t), Run: "confined"})
	if err != nil {
		t.Fatal(err)
	}
	id := "at-confined-00001"
	sandbox := newSandbox(t, on, SandboxOptions{ID: id})
	configMap := func(namespace, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}}
	}
	for name, request := range map[string]framework.Request{
		"delete the tenant's object":     {Verb: framework.VerbDelete, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "tenant-a", Name: "theirs"},
		"delete the tenant's role":       {Verb: framework.VerbDelete, Kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Name: "tenants-role"},
		"leave an object in kube-system": requestOf(framework.VerbCreate, configMap("kube-system", "left")),
		"take over the tenant's object":  requestOf(framework.VerbApply, configMap("tenant-a", "theirs")),
	} {
		t.Run(name, func(t *testing.T) {
			if result, err := sandbox.Do(ctx, request); !errors.Is(err, framework.ErrForeign) || result.Status.Code != 0 {
				t.Errorf("got %d, %v; want an ErrForeign, and no request", result.Status.Code, err)
			}
		})
	}

	// A webhook configuration is narrowed, and a request for one is not sent.
	closed := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "closed"},
		"webhooks": []any{map[string]any{
			"name": "closed.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1"},
			"rules": []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*/*"}}},
		}},
	}
	if result, err := sandbox.Do(ctx, requestOf(framework.VerbCreate, closed)); !errors.Is(err, framework.ErrForeign) || result.Status.Code != 0 {
		t.Errorf("create a webhook configuration: %d, %v; want an ErrForeign, and no request", result.Status.Code, err)
	}
	if err := sandbox.Install(ctx, closed, nil); err != nil {
		t.Fatal(err)
	}
	if err := on.WaitUntilEffective(ctx, []map[string]any{closed}); err != nil {
		t.Fatal(err)
	}
	own := requestOf(framework.VerbCreate, configMap(id, "own"))
	if result, err := sandbox.Do(ctx, own); err != nil || result.Allowed() {
		t.Errorf("the scenario's own request: got %d, %v; want it refused by the webhook", result.Status.Code, err)
	}
	if _, err := tenants.CoreV1().ConfigMaps("tenant-a").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "second"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a request of the tenant reached the webhook: %v", err)
	}
	if _, err := tenants.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenants-second"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a cluster-scoped request of the tenant reached the webhook: %v", err)
	}

	if err := on.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"the tenant's object": second(tenants.CoreV1().ConfigMaps("tenant-a").Get(ctx, "theirs", metav1.GetOptions{})),
		"the tenant's role":   second(tenants.RbacV1().ClusterRoles().Get(ctx, "tenants-role", metav1.GetOptions{})),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"object in kube-system": second(tenants.CoreV1().ConfigMaps("kube-system").Get(ctx, "left", metav1.GetOptions{})),
		"namespace of the run":  second(tenants.CoreV1().Namespaces().Get(ctx, "at-confined-run", metav1.GetOptions{})),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, want that it is gone", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What an Open Sandbox installs can refuse namespaces, so that of the fences exists before. Only
// on an API server that ends with the run there is such a Sandbox.
func TestOpenSandbox(t *testing.T) {
	for run, disposable := range map[string]bool{"opendisposable": true, "openshared": false} {
		t.Run(run, func(t *testing.T) {
			run += fmt.Sprint(rand.Uint32()) //nolint:gosec // no secret: a disposable server keeps the namespaces of the last time
			on, err := New(t.Context(), Options{Config: testserver.Config(t), Run: run, Disposable: disposable})
			if err != nil {
				t.Fatal(err)
			}
			_, err = on.NewSandbox(t.Context(), SandboxOptions{ID: "at-" + run + "-00001", Open: true})
			if shared := errors.Is(err, framework.ErrForeign); shared == disposable || disposable && err != nil {
				t.Errorf("disposable %t: got %v", disposable, err)
			}
			client, err := kubernetes.NewForConfig(testserver.Config(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), "at-"+run+"-fence", metav1.GetOptions{}); (err == nil) != disposable {
				t.Errorf("disposable %t: namespace of the fences: %v", disposable, err)
			}
			if err := on.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

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
	for _, step := range []struct {
		name    string
		request framework.Request
		want    string
	}{
		{"created", annotated("created"), "created"},
		{"patched", patch, "patched"},
		{"deleted", framework.Request{Verb: framework.VerbDelete, Kind: quota, Namespace: id, Name: "limit"}, ""},
	} {
		if got := do(t, sandbox, step.request); !got.Allowed() {
			t.Fatalf("%s: %s", step.name, got.Status.Message)
		}
		if got := decided(t, sandbox, id); got != step.want {
			t.Errorf("%s: the policy has %q, want %q", step.name, got, step.want)
		}
	}
	for _, value := range []string{"installed", "replaced"} {
		if err := sandbox.Install(t.Context(), manifests(t, `[{apiVersion: v1, kind: ResourceQuota, metadata: {name: limit, annotations: {value: `+value+`}}, spec: {}}]`)[0], nil); err != nil {
			t.Fatal(err)
		}
		if got := decided(t, sandbox, id); got != value {
			t.Errorf("the policy has %q, want %q", got, value)
		}
	}
	if err := sandbox.Delete(t.Context(), quota, "limit"); err != nil {
		t.Fatal(err)
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

func TestRequireRights(t *testing.T) {
	if err := RequireRights(t.Context(), testserver.Config(t), RunRights()); err != nil {
		t.Errorf("administrator: %v", err)
	}
	config := testserver.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	err := RequireRights(t.Context(), config, append(RunRights(), Right{Verb: "get", Path: "/metrics"}, Right{Verb: "get", Path: "/version"}))
	if !errors.Is(err, ErrRightsMissing) {
		t.Fatalf("stranger: %v, want ErrRightsMissing", err)
	}
	for _, part := range []string{"user stranger: rights are missing: ", "get /metrics;", "create namespaces,", "nothing was created", `"admissiontest rbac"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}
