package vary

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/cel"
)

func pod(image string, more ...any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": image, "labels": map[string]any{"a.b/c": "d"}},
		"spec": map[string]any{"containers": append([]any{map[string]any{"image": image}}, more...)},
	}
}

// Each value is varied, but what says which object it is; the order is always the same.
func TestPaths(t *testing.T) {
	var got []string
	for _, path := range Paths(pod("i"), nil) {
		got = append(got, path.String())
	}
	want := []string{"metadata", "metadata.labels", `metadata.labels["a.b/c"]`, "spec", "spec.containers", "spec.containers[0]", "spec.containers[0].image"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestWith(t *testing.T) {
	object := pod("i", map[string]any{"image": "second"})
	for _, test := range []struct {
		path   cel.Path
		change func(any) (any, bool)
		want   map[string]any
	}{
		{cel.Path{"spec", "containers", 1}, Remove, pod("i")},
		{cel.Path{"spec", "containers", 2}, Remove, nil},
		{cel.Path{"spec", "volumes", 0}, Remove, nil},
		{cel.Path{"spec", "containers"}, func(any) (any, bool) { return []any{map[string]any{"image": "i"}}, true }, pod("i")},
	} {
		t.Run(test.path.String(), func(t *testing.T) {
			if diff := cmp.Diff(test.want, With(object, test.path, test.change)); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(pod("i", map[string]any{"image": "second"}), object); diff != "" {
		t.Errorf("the original has changed:\n%s", diff)
	}
}

// What an API server sets is no difference; everything else is.
func TestDifferences(t *testing.T) {
	sent, got := pod("i"), pod("i")
	got["status"] = map[string]any{"phase": "Pending"}
	metadata, _ := got["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"] = "1", "2"
	if found := Differences(sent, got); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	metadata["finalizers"] = []any{"a/b"}
	got["type"] = "t"
	if found := fmt.Sprint(Differences(sent, got)); found != "[metadata.finalizers type]" {
		t.Errorf("got %s", found)
	}
}
