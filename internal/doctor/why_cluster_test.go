package doctor

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// Why knows the configurations of a cluster, and the labels of its namespaces.
func TestWhyOnCluster(t *testing.T) {
	config := rest.CopyConfig(testserver.Own(t))
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "why", "labels": map[string]any{"team": "blue"}}}
	webhook := map[string]any{
		"name": "why.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore", "clientConfig": map[string]any{"url": "https://127.0.0.1:1"},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "blue"}},
		"rules":             []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}}},
	}
	create(t, config, []map[string]any{namespace, {
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "why"}, "webhooks": []any{webhook},
	}})
	snapshot, err := ReadCluster(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		namespace, operation string
		want                 reach.Effect
		text                 string
	}{
		{"why", "CREATE", reach.EffectCalled, "it is called"},
		{"default", "CREATE", reach.EffectNone, `"team"`},
		{"why", "DELETE", reach.EffectNone, "DELETE"},
	} {
		t.Run(test.operation+" in "+test.namespace, func(t *testing.T) {
			pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": test.namespace}}
			answer, err := Why(t.Context(), Input{Cluster: snapshot}, Question{Object: pod, Operation: test.operation})
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range answer.Steps {
				if step.Webhook == "why.example.com" {
					if step.Effect != test.want || !strings.Contains(step.Text, test.text) {
						t.Errorf("%s: %s; want %s: %s", step.Effect, step.Text, test.want, test.text)
					}
					return
				}
			}
			t.Errorf("no step is about the webhook: %v", fmt.Sprint(answer.Steps))
		})
	}
}
