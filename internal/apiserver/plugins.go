package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
)

// Plugins returns the names of the enabled admission plugins, sorted: those that the API
// server reports as called in its metrics, after a create and an update that are dry runs
// and change nothing. Each plugin of Kubernetes handles one of these operations. The list
// is incomplete if there is an error too: a plugin that is not in it can be enabled.
func (t *Target) Plugins(ctx context.Context) ([]string, error) {
	const namespace = "default"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "admissiontest-", "namespace": namespace},
	}}
	of := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}).GroupVersionKind()
	refused := ""
	for _, request := range []framework.Request{
		{Verb: framework.VerbCreate, Kind: object.GroupVersionKind(), Namespace: namespace, Object: object, DryRun: true},
		{Verb: framework.VerbPatch, Kind: of, Name: namespace, DryRun: true, HTTP: framework.HTTP{Patch: []byte("{}"), PatchType: types.MergePatchType}},
	} {
		result, err := t.Do(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("find the admission plugins: %w", err)
		}
		if !result.Allowed() {
			refused = fmt.Sprintf("%s was refused with %d %s", request, result.Status.Code, result.Status.Message)
		}
	}
	found, err := t.client.CalledPlugins(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the admission plugins: %w", err)
	}
	if refused != "" {
		return found, fmt.Errorf("find the admission plugins: a dry-run request did not reach all of them: %s", refused)
	}
	return found, nil
}
