package cluster

import (
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels that everything of ours on a cluster carries.
const (
	// RunLabel has the run's ID as its value. Cleanup goes by it.
	RunLabel = "admissiontest.dev/run"
	// ScenarioLabel has the scenario's ID as its value. Webhook configurations and
	// policies are narrowed to namespaces that carry it.
	ScenarioLabel = "admissiontest.dev/scenario"
)

var errNoKind = errors.New("manifest has no apiVersion or no kind: write both, as for kubectl apply")

// kindOf returns the kind that a manifest states.
func kindOf(manifest map[string]any) (schema.GroupVersionKind, error) {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" || kind == "" {
		return schema.GroupVersionKind{}, errNoKind
	}
	return gv.WithKind(kind), nil
}

func nestedString(object map[string]any, path ...string) (string, bool) {
	value, ok, err := unstructured.NestedString(object, path...)
	return value, ok && err == nil
}

func nestedSlice(object map[string]any, path ...string) ([]any, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, ok := value.([]any)
	return list, ok
}

// labelled returns a shallow copy of a manifest with labels added to its own.
func labelled(manifest map[string]any, labels map[string]string) map[string]any {
	out := maps.Clone(manifest)
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	old, _ := metadata["labels"].(map[string]any)
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range labels {
		merged[key] = value
	}
	metadata["labels"] = merged
	out["metadata"] = metadata
	return out
}

// renamed returns a shallow copy of a manifest with another name.
func renamed(manifest map[string]any, name string) map[string]any {
	out := maps.Clone(manifest)
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = name
	out["metadata"] = metadata
	return out
}
