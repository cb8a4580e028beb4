package hook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConversionAnswer(t *testing.T) {
	c := Conversion{Renames: []map[string]string{{"v1": "spec.size", "v2": "spec.scale.replicas"}, {"v1": "spec.old"}}}
	review := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"request": map[string]any{"uid": "u", "desiredAPIVersion": "g/v2", "objects": []any{
			map[string]any{"apiVersion": "g/v1", "kind": "W", "spec": map[string]any{"size": int64(3), "old": "x"}},
		}},
	}
	want := map[string]any{"apiVersion": "g/v2", "kind": "W", "spec": map[string]any{"scale": map[string]any{"replicas": int64(3)}}}
	response := c.Answer(review)["response"].(map[string]any)
	if diff := cmp.Diff([]any{want}, response["convertedObjects"]); diff != "" {
		t.Errorf("converted: -want +got\n%s", diff)
	}
	if response["uid"] != "u" {
		t.Errorf("uid: got %v, want that of the request", response["uid"])
	}
	back := c.convert(want, "g/v1")
	if diff := cmp.Diff(map[string]any{"size": int64(3), "scale": map[string]any{}}, back["spec"]); diff != "" {
		t.Errorf("converted back: -want +got\n%s", diff)
	}
}
