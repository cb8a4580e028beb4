package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// worldOf returns a world with objects.
func worldOf(t *testing.T, objects ...map[string]any) *world {
	t.Helper()
	s := &Snapshot{Minor: 36, Resources: kinds.BuiltIn(), Objects: objects}
	w, err := newWorld(t.Context(), Input{Cluster: s})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func named(apiVersion, kind, name string, more map[string]any) map[string]any {
	u := unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace("ns")
	u.SetName(name)
	for field, value := range more {
		u.Object[field] = value
	}
	return u.Object
}

// Requests that differ only in the labels of their objects are different requests: a selector can tell them apart.
func TestProbesDiffer(t *testing.T) {
	labels := func(app string) map[string]any { return map[string]any{"app": app} }
	workload := func(kind, app string) map[string]any {
		return named("apps/v1", kind, "same", map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels(app)}}}})
	}
	service := func(name, app string) map[string]any {
		return named("v1", "Service", name, map[string]any{"spec": map[string]any{"selector": labels(app)}})
	}
	webhook := map[string]any{
		"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "objectSelector": map[string]any{"matchLabels": labels("one")},
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "ns", "name": "third"}},
		"rules":        []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}}},
	}
	configuration := named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "c", map[string]any{"webhooks": []any{webhook}})
	w := worldOf(t, workload("Deployment", "one"), workload("StatefulSet", "two"), service("first", "one"), service("second", "two"), configuration)
	first, second := w.podOf(w.backendOf("ns", "first")), w.podOf(w.backendOf("ns", "second"))
	if first.text != second.text {
		t.Fatalf("the requests are %q and %q; want the same text", first.text, second.text)
	}
	if h := w.webhooks[0]; !w.reaches(h, first).called || w.reaches(h, second).possible() {
		t.Errorf("called for %v: %v, for %v: %v; want only the first", first.Object, w.reaches(h, first), second.Object, w.reaches(h, second))
	}
}

// If package reach cannot decide, nothing counts as not called.
func TestUndecided(t *testing.T) {
	webhook := map[string]any{
		"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://w.example.com"},
		"rules": []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}}},
	}
	w := worldOf(t, named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "c", map[string]any{"webhooks": []any{webhook}}))
	p := newProbe(w, about{operation: "CREATE", resource: "pods", namespace: "ns", name: "p"})
	p.Operation = ""
	if d := w.reaches(w.webhooks[0], probeOf(p.Request, "without an operation")); d.called || d.unknown == "" {
		t.Errorf("got %+v; want unknown, with the reason", d)
	}
}
