package reach_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// shop is an API server that serves ConfigMaps and has the namespace "shop" of team red.
type shop struct {
	runtime.EquivalentResourceMapper
}

func (shop) Namespace(_ context.Context, name string) (map[string]any, error) {
	if name != "shop" {
		return nil, nil
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{"team": "red"}}}, nil
}

func (shop) Params(context.Context, schema.GroupVersionKind) (reach.Params, error) {
	return reach.Params{}, nil // it serves no kind of params
}

func (shop) Convert(_ context.Context, object map[string]any, _ schema.GroupVersionKind) (map[string]any, error) {
	return object, nil // it serves one version
}

// Why does the webhook not see that a ConfigMap is created?
func Example() {
	admission, err := reach.New([]map[string]any{{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "ValidatingWebhookConfiguration",
		"metadata":   map[string]any{"name": "owners"},
		"webhooks": []any{map[string]any{
			"name":              "owners.example.com",
			"rules":             []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "blue"}},
		}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := reach.NewMapper([]*metav1.APIResourceList{{
		GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}},
	}})
	findings, err := admission.Explain(context.Background(), reach.Request{
		Operation: "CREATE",
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Kind:      schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Namespace: "shop", Name: "subject",
		User:   framework.User{Name: "alice"},
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "subject"}},
	}, shop{served})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, finding := range findings {
		fmt.Println(finding.Effect, finding.Reason)
		fmt.Println(finding)
	}
	// Output:
	// none NamespaceSelector
	// ValidatingWebhookConfiguration "owners", webhook "owners.example.com": it is not called: the namespaceSelector does not match namespace "shop": label "team" is "red", want "blue"
}
