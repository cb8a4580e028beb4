package apiserver

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

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
