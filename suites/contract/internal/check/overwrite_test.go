package check

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func fullPod() *corev1.Pod {
	seconds := int64(3)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}, CreationTimestamp: metav1.Unix(1, 0)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &seconds,
			Containers: []corev1.Container{{
				Name: "c", Args: []string{"x"},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}},
		},
	}
}

func fullUnstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"sizes": []any{int64(1), "two", map[string]any{"three": true}}},
	}}
}

// TestOverwrite: everything that a shallow copy would share is replaced, and Restore
// writes all of it again.
func TestOverwrite(t *testing.T) {
	for name, object := range map[string]runtime.Object{"typed": fullPod(), "unstructured": fullUnstructured()} {
		t.Run(name, func(t *testing.T) {
			was := object.DeepCopyObject()
			done := Overwrite(SpareNone, object)
			if Equal(was, object) {
				t.Error("nothing was overwritten")
			}
			done.Restore()
			if difference := cmp.Diff(was, object); difference != "" {
				t.Errorf("not restored (- was, + is):\n%s", difference)
			}
		})
	}
	pod := fullPod()
	args, labels, seconds := pod.Spec.Containers[0].Args, pod.Labels, pod.Spec.TerminationGracePeriodSeconds
	Overwrite(SpareNone, pod)
	if args[0] == "x" || labels["a"] == "b" || *seconds == 3 {
		t.Errorf("not overwritten: %q, %v, %d", args, labels, *seconds)
	}
	if !pod.CreationTimestamp.Equal(&metav1.Time{Time: metav1.Unix(1, 0).Time}) {
		t.Error("a time was overwritten, whose fields are not exported")
	}
}

// TestForeignEdit: the edits that an object offers; each changes the object.
func TestForeignEdit(t *testing.T) {
	edits := func(was, is runtime.Object) (names []string) {
		for number := range 100 {
			edited := is.DeepCopyObject()
			edit := ForeignEdit{Index: number}
			edit.Apply(was.DeepCopyObject(), edited)
			if edit.Name == "" {
				return names
			}
			if Equal(is, edited) {
				t.Errorf("%q changed nothing", edit.Name)
			}
			names = append(names, edit.Name)
		}
		return names
	}
	was, is := fullPod(), fullPod()
	is.Labels["team"] = "blue"
	is.Spec.Containers = append(is.Spec.Containers, corev1.Container{Name: "sidecar"})
	*is.Spec.TerminationGracePeriodSeconds = 4
	want := []string{
		"reverted metadata.labels[team]",
		"reverted spec.containers",
		"reverted spec.terminationGracePeriodSeconds",
		"added a key to metadata.labels",
		"added an entry to spec.containers",
	}
	if difference := cmp.Diff(want, edits(was, is)); difference != "" {
		t.Errorf("typed (- want, + got):\n%s", difference)
	}
	loose, changed := fullUnstructured(), fullUnstructured()
	changed.SetLabels(map[string]string{"a": "b", "team": "blue"})
	want = []string{"reverted object[metadata][labels][team]"}
	if difference := cmp.Diff(want, edits(loose, changed)); difference != "" {
		t.Errorf("unstructured (- want, + got):\n%s", difference)
	}
}

// hidden has an unexported field, at which equality and go-cmp panic.
type hidden struct {
	corev1.Pod
	secret []string
}

func (h *hidden) DeepCopyObject() runtime.Object {
	return &hidden{*h.DeepCopy(), slices.Clone(h.secret)}
}

// TestEqualAndDiff: objects with unexported fields are compared too.
func TestEqualAndDiff(t *testing.T) {
	one, other := &hidden{secret: []string{"a"}}, &hidden{secret: []string{"b"}}
	if Equal(one, other) || !Equal(one, one.DeepCopyObject()) {
		t.Error("Equal is wrong for objects with unexported fields")
	}
	if Diff(one, other) == "" {
		t.Error("Diff is empty for different objects")
	}
	var none *corev1.Pod
	if !Equal(nil, none) || Equal(none, &corev1.Pod{}) {
		t.Error("Equal is wrong for nil")
	}
}

// OverwriteContent spares kind and metadata, also of unstructured objects.
func TestOverwriteContent(t *testing.T) {
	typed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "c"}}, Data: map[string]string{"key": "value"}}
	loose := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"},
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"b": "c"}},
	}}
	for _, object := range []runtime.Object{typed, loose} {
		was := object.DeepCopyObject()
		OverwriteContent(object)
		accessor, err := meta.Accessor(object)
		if err != nil || accessor.GetName() != "a" || accessor.GetLabels()["b"] != "c" || len(accessor.GetLabels()) != 1 || object.GetObjectKind().GroupVersionKind() != was.GetObjectKind().GroupVersionKind() {
			t.Errorf("%T: kind or metadata changed: %v, %v", object, object, err)
		}
		if Equal(was, object) {
			t.Errorf("%T: nothing changed", object)
		}
	}
	if typed.Data["key"] == "value" || loose.Object["data"].(map[string]any)["key"] == "value" {
		t.Errorf("the data has not changed: %v, %v", typed, loose)
	}
}
