package kinds_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	document := map[string]any{}
	if err := json.Unmarshal([]byte(`{"components": {"schemas": {
		"v1.Widget": {
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
			"properties": {
				"metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}], "default": {}},
				"spec": {"type": "object", "properties": {
					"size": {"type": "integer"},
					"parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
					"open": {"type": "object", "properties": {"known": {}}, "x-kubernetes-preserve-unknown-fields": true},
					"any": {"type": "object"}
				}}
			}
		},
		"Meta": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
		"Part": {"type": "object", "properties": {"name": {"type": "string"}, "part": {"$ref": "#/components/schemas/Part"}}},
		"Loop": {"$ref": "#/components/schemas/Loop"}
	}}}`), &document); err != nil {
		t.Fatal(err)
	}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	type path = []any
	for _, one := range []struct {
		kind  schema.GroupVersionKind
		path  path
		index int // -1: nothing is missing
		names string
	}{
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), path{"data", "any"}, -1, ""},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), path{"metadata", "creationTimestamp"}, -1, ""},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), path{"metadata", "managedFields", 0, "fieldsV1", "f:any", "f:deeper"}, -1, ""},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), path{"dta", "deeper"}, 0, "data"},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), path{"data", "any", "deeper"}, 2, ""},
		{corev1.SchemeGroupVersion.WithKind("Pod"), path{"spec", "containers", 0, "imge"}, 3, "image"},
		{corev1.SchemeGroupVersion.WithKind("Pod"), path{"spec", "containers", "image"}, 2, ""},
		{corev1.SchemeGroupVersion.WithKind("Pod"), path{0}, -1, ""},
		{corev1.SchemeGroupVersion.WithKind("Status"), path{"detials"}, 0, "details"},
		{metav1.SchemeGroupVersion.WithKind("CreateOptions"), path{"dryRunn"}, 0, "dryRun"},
		{widget, path{"metadata", "labels", "any"}, -1, ""},
		{widget, path{"spec", "parts", 0, "part", "part", "name"}, -1, ""},
		{widget, path{"spec", "open", "any"}, -1, ""},
		{widget, path{"spec", "any", "any"}, -1, ""},
		{widget, path{"metadata", "lables"}, 1, "labels"},
		{widget, path{"spec", "parts", 0, "nme"}, 3, "name"},
		{widget, path{"spec", "parts", "name"}, 2, ""},
		{widget, path{"spec", "size", "deeper"}, 2, ""},
	} {
		t.Run(fmt.Sprintf("%s %v", one.kind.Kind, one.path), func(t *testing.T) {
			missing, known := kinds.MissingInKind(one.kind, one.path)
			if one.kind == widget {
				missing, known = kinds.MissingInDocument(document, one.kind, one.path)
			}
			switch {
			case !known:
				t.Errorf("%s is not known", one.kind)
			case (missing == nil) != (one.index < 0):
				t.Errorf("%s %v: got %v; want index %d", one.kind, one.path, missing, one.index)
			case missing != nil && (missing.Index != one.index || one.names != "" && !slices.Contains(missing.Names, one.names) || one.names == "" && len(missing.Names) > 0):
				t.Errorf("%s %v: got %v; want index %d with %q", one.kind, one.path, *missing, one.index, one.names)
			}
		})
	}
	if _, known := kinds.MissingInKind(widget, path{"spec"}); known {
		t.Error("InKind knows a custom resource")
	}
	if _, known := kinds.MissingInDocument(document, corev1.SchemeGroupVersion.WithKind("Pod"), path{"spec"}); known {
		t.Error("InDocument knows a kind that the document does not have")
	}
}

func TestListsBeside(t *testing.T) {
	list := func(of string) map[string]any {
		return map[string]any{"type": "array", "items": map[string]any{"$ref": "#/components/schemas/" + of}}
	}
	fieldsOf := func(properties map[string]any) map[string]any { return map[string]any{"properties": properties} }
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := fieldsOf(map[string]any{"spec": map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/Spec"}}}})
	pod["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": "", "version": "v1", "kind": "Pod"}}
	document := map[string]any{"components": map[string]any{"schemas": map[string]any{
		"Pod": pod, "Spec": fieldsOf(map[string]any{"a": list("Full"), "b": list("Full"), "c": list("Part"), "d": list("Other"), "e": map[string]any{"type": "string"}}),
		"Full": fieldsOf(map[string]any{"name": nil, "image": map[string]any{}, "port": map[string]any{}}),
		"Part": fieldsOf(map[string]any{"image": map[string]any{}}), "Other": fieldsOf(map[string]any{"host": map[string]any{}}),
	}}}
	item := map[string]any{"image": "i"}
	if got := kinds.ListsBeside(document, kind, []any{"spec", "a"}, item); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("got %v", got)
	}
	item["port"] = int64(1)
	if got := kinds.ListsBeside(document, kind, []any{"spec", "a"}, item); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v", got)
	}
	if got := kinds.ListsBeside(document, schema.GroupVersionKind{Kind: "None"}, []any{"spec", "a"}, item); got != nil {
		t.Errorf("got %v for an unknown kind", got)
	}
}

func TestTypeAt(t *testing.T) {
	const ref = "#/components/schemas/"
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	document := map[string]any{"components": map[string]any{"schemas": map[string]any{
		"Pod": map[string]any{
			"x-kubernetes-group-version-kind": []any{map[string]any{"group": "", "version": "v1", "kind": "Pod"}},
			"properties": map[string]any{
				"spec": map[string]any{"allOf": []any{map[string]any{"$ref": ref + "Spec"}}},
				"name": map[string]any{"type": "string"},
			},
		},
		"Spec":     map[string]any{"properties": map[string]any{"list": map[string]any{"type": "array", "items": map[string]any{"$ref": ref + "Limits"}}}},
		"Limits":   map[string]any{"additionalProperties": map[string]any{"$ref": ref + "Quantity"}},
		"Quantity": map[string]any{"type": "string"},
	}}}
	for want, path := range map[string][]any{"Spec": {"spec"}, "Limits": {"spec", "list", 0}, "Quantity": {"spec", "list", 1, "cpu"}, "": {"name"}} {
		if got := kinds.TypeAt(document, kind, path); got != want {
			t.Errorf("%v is a %q, want %q", path, got, want)
		}
	}
	for _, path := range [][]any{{"none", "deeper", 0}, {"spec", 0}, {"name", "deeper"}} {
		if got := kinds.TypeAt(document, kind, path); got != "" {
			t.Errorf("%v is a %q, want nothing", path, got)
		}
	}
}
