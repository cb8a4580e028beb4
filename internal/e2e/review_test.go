package e2e

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// The reviews that package review builds have what a kube-apiserver sends to mutating and validating webhooks: the
// same fields, and the values that do not come from defaults, clients and the storage.
func TestReviewsAreLikeTheServers(t *testing.T) {
	t.Parallel()
	on, err := apiserver.New(t.Context(), apiserver.Options{Config: testserver.Own(t), Kind: framework.TargetEnvtest, Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := on.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	id := "at-" + on.RunID() + "-review"
	sandbox, err := on.NewSandbox(t.Context(), apiserver.SandboxOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	everything := map[string]any{"operations": []any{"*"}, "apiGroups": []any{"", "apps", "policy"}, "apiVersions": []any{"*"}, "resources": []any{"*/*"}}
	var configurations []map[string]any
	for _, kind := range []string{"Mutating", "Validating"} {
		configurations = append(configurations, map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "metadata": map[string]any{"name": "review"},
			"webhooks": []any{map[string]any{"name": strings.ToLower(kind) + ".example.com", "rules": []any{everything}}},
		})
	}
	for _, each := range configurations {
		if err := sandbox.Install(t.Context(), each, map[string]hook.Script{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := on.WaitUntilEffective(t.Context(), configurations); err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": id, "labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"automountServiceAccountToken": false, "schedulerName": "none", "containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}
	labels := map[string]any{"app": "a"}
	deployment := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": id},
		"spec": map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
	}
	configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": id}, "data": map[string]any{"a": "b"}}
	generated := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "c-", "namespace": id}}
	for _, test := range []struct {
		manifest               map[string]any
		operation, subresource string
	}{
		{configMap, review.OpCreate, ""}, {configMap, review.OpUpdate, ""}, {configMap, review.OpDelete, ""}, {generated, review.OpCreate, ""},
		{pod, review.OpCreate, ""}, {pod, review.OpUpdate, ""}, {deployment, review.OpCreate, ""}, {deployment, review.OpUpdate, ""}, {deployment, review.OpUpdate, "status"}, {deployment, review.OpUpdate, "scale"},
		{pod, review.OpUpdate, "status"}, {pod, review.OpUpdate, "ephemeralcontainers"}, {pod, review.OpUpdate, "resize"},
		{pod, review.OpConnect, "exec"}, {pod, review.OpConnect, "attach"}, {pod, review.OpConnect, "portforward"}, {pod, review.OpConnect, "proxy"},
		{pod, review.OpCreate, "binding"}, {pod, review.OpCreate, "eviction"}, {deployment, review.OpDelete, ""},
	} {
		t.Run(test.operation+" "+test.subresource+" "+fmt.Sprint(test.manifest["kind"]), func(t *testing.T) {
			built, err := review.Kinds{}.New(test.manifest, test.operation, test.subresource)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range recorded(t, sandbox, test.manifest, test.operation, test.subresource) {
				seen := built
				if call.Phase == framework.Validating {
					seen = review.Validated(built)
				}
				want, _ := review.Build(seen, "admission.k8s.io/v1", "uid")["request"].(map[string]any)
				t.Run(string(call.Phase), func(t *testing.T) { compareReviews(t, want, call.Request()) })
			}
		})
	}
}

// recorded sends a request, and returns the calls of the webhooks.
func recorded(t *testing.T, sandbox target.Sandbox, manifest map[string]any, operation, subresource string) framework.Trace {
	t.Helper()
	u := (&unstructured.Unstructured{Object: manifest}).DeepCopy()
	request := framework.Request{Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Subresource: subresource, Object: u}
	switch operation {
	case review.OpCreate:
		request.Verb = framework.VerbCreate
	case review.OpUpdate:
		request.Verb = framework.VerbUpdate
	case review.OpDelete:
		request.Verb, request.Object = framework.VerbDelete, nil
	case review.OpConnect:
		request.Verb, request.Object = framework.VerbConnect, nil
		request.HTTP.ProxyPath = "/"
		request.HTTP.Query = map[string][]string{"stdout": {"true"}, "command": {"date"}, "ports": {"8080"}}
	}
	if operation == review.OpUpdate {
		of := subresource // kubectl scale reads it, and sends it back
		if of != "scale" {
			of = ""
		}
		got, err := sandbox.Send(t.Context(), framework.Request{Verb: framework.VerbGet, Kind: request.Kind, Namespace: request.Namespace, Name: request.Name, Subresource: of})
		if err != nil || !got.Allowed() {
			t.Fatalf("%v: %v", got.Status, err)
		}
		request.Object = got.Object
	}
	if made, err := (review.Kinds{}).New(manifest, operation, subresource); err == nil && operation == review.OpCreate && subresource != "" {
		body := &unstructured.Unstructured{Object: made.Object}
		unstructured.RemoveNestedField(body.Object, "metadata", "managedFields")
		request.Object = body
	}
	result, err := sandbox.Do(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	calls := slices.DeleteFunc(slices.Clone(result.Trace), func(call framework.Call) bool { return call.Webhook == "" || !call.Observed })
	if len(calls) != 2 {
		t.Fatalf("%d calls, want 2: %v", len(calls), result.Status)
	}
	return calls
}

// byServer are the metadata that an API server sets, whose values differ.
func byServer() []string {
	return []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}
}

// sameGenerated gives a generated name in both reviews the same end.
func sameGenerated(want, got map[string]any) {
	prefix, _, _ := unstructured.NestedString(got, "object", "metadata", "generateName")
	built, _ := want["name"].(string)
	sent, _ := got["name"].(string)
	if prefix == "" || !strings.HasPrefix(built, prefix) || !strings.HasPrefix(sent, prefix) {
		return
	}
	if name, _, _ := unstructured.NestedString(got, "object", "metadata", "name"); name == sent {
		_ = unstructured.SetNestedField(got, built, "object", "metadata", "name") // it has metadata
		got["name"] = built
	}
}

func compareReviews(t *testing.T, want, got map[string]any) {
	t.Helper()
	sameGenerated(want, got)
	if built, sent := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(built, sent) {
		t.Errorf("fields %v, a kube-apiserver sends %v", built, sent)
	}
	for _, field := range []string{"kind", "resource", "requestKind", "requestResource", "operation", "subResource", "requestSubResource", "name", "namespace", "dryRun"} {
		if !reflect.DeepEqual(want[field], got[field]) {
			t.Errorf("%s: built %v, a kube-apiserver sends %v", field, want[field], got[field])
		}
	}
	if kind := func(of any) schema.GroupVersionKind {
		fields, _ := of.(map[string]any)
		return (&unstructured.Unstructured{Object: fields}).GroupVersionKind()
	}; kind(want["options"]) != kind(got["options"]) {
		t.Errorf("options: built %v, a kube-apiserver sends %v", want["options"], got["options"])
	}
	for _, field := range []string{"object", "oldObject"} {
		built, _ := want[field].(map[string]any)
		sent, _ := got[field].(map[string]any)
		if (built == nil) != (sent == nil) {
			t.Errorf("%s: built %v, a kube-apiserver sends %v", field, built, sent)
			continue
		}
		within(t, field, built, sent)
		have, _ := built["metadata"].(map[string]any)
		has, _ := sent["metadata"].(map[string]any)
		for _, metadata := range []map[string]any{have, has} {
			delete(metadata, "generation") // some kinds have none
		}
		if a, b := slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(has)); !slices.Equal(a, b) {
			t.Errorf("%s.metadata: built %v, a kube-apiserver sends %v", field, a, b)
		}
	}
}

// within fails for each value that was built and that the API server does not send.
func within(t *testing.T, path string, built, sent any) {
	t.Helper()
	fields, isMap := built.(map[string]any)
	others, _ := sent.(map[string]any)
	if !isMap {
		items, isList := built.([]any)
		got, _ := sent.([]any)
		if isList && len(items) == len(got) {
			for i := range items {
				within(t, fmt.Sprintf("%s[%d]", path, i), items[i], got[i])
			}
		} else if !reflect.DeepEqual(built, sent) {
			t.Errorf("%s: built %v, a kube-apiserver sends %v", path, built, sent)
		}
		return
	}
	for name, value := range fields {
		if (path == "object.metadata" || path == "oldObject.metadata") && slices.Contains(byServer(), name) {
			continue
		}
		within(t, path+"."+name, value, others[name])
	}
}
