package contract

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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

// TestScribble: every part is written over that shares memory with a copy of the
// struct alone, and all of it comes back.
func TestScribble(t *testing.T) {
	for name, object := range map[string]runtime.Object{"typed": fullPod(), "unstructured": fullUnstructured()} {
		t.Run(name, func(t *testing.T) {
			was := object.DeepCopyObject()
			done := scribble(nothing, object)
			if same(was, object) {
				t.Error("nothing was written over")
			}
			done.restore()
			if difference := cmp.Diff(was, object); difference != "" {
				t.Errorf("it was not restored (- was, + is):\n%s", difference)
			}
		})
	}
	pod := fullPod()
	args, labels, seconds := pod.Spec.Containers[0].Args, pod.Labels, pod.Spec.TerminationGracePeriodSeconds
	scribble(nothing, pod)
	if args[0] == "x" || labels["a"] == "b" || *seconds == 3 {
		t.Errorf("left as they were: %q, %v, %d", args, labels, *seconds)
	}
	if !pod.CreationTimestamp.Equal(&metav1.Time{Time: metav1.Unix(1, 0).Time}) {
		t.Error("a time was written over: its parts are not exported")
	}
}

// TestScribbleSpareRoom: what lies behind the elements of a slice is written over too.
func TestScribbleSpareRoom(t *testing.T) {
	room := []string{"a", "b", "c"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: room[:1]}}
	scribble(nothing, pod)
	if slices.Contains(room, "a") || slices.Contains(room, "c") {
		t.Errorf("left as it was: %q", room)
	}
}

// TestScribbleSpares: memory that was there before is left, what has come since is not.
func TestScribbleSpares(t *testing.T) {
	pod := fullPod()
	before := memoryOf(pod)
	pod.Annotations = map[string]string{"new": "x"}
	scribble(before.has, pod)
	if pod.Name != "p" || pod.Labels["a"] != "b" || pod.Spec.Containers[0].Name != "c" {
		t.Error("what was there before was written over")
	}
	if pod.Annotations["new"] == "x" {
		t.Error("what is new was left")
	}
	others := func(place reflect.Value) bool { return !before.has(place) }
	pod = fullPod()
	before = memoryOf(pod)
	pod.Annotations = map[string]string{"new": "x"}
	scribble(others, pod)
	if pod.Name == "p" || pod.Annotations["new"] != "x" {
		t.Error("the other way round, the wrong one was written over")
	}
}

// TestEditor: the edits of an object, each of them different.
func TestEditor(t *testing.T) {
	edits := func(was, is runtime.Object) (names []string) {
		for number := range 100 {
			edited := is.DeepCopyObject()
			edit := editor{at: number}
			edit.object(was.DeepCopyObject(), edited)
			if edit.name == "" {
				return names
			}
			if same(is, edited) {
				t.Errorf("%q changed nothing", edit.name)
			}
			names = append(names, edit.name)
		}
		return names
	}
	was, is := fullPod(), fullPod()
	is.Labels["team"] = "blue"
	is.Spec.Containers = append(is.Spec.Containers, corev1.Container{Name: "sidecar"})
	*is.Spec.TerminationGracePeriodSeconds = 4
	want := []string{
		"undone the change of ObjectMeta.Labels[team]",
		"undone the change of Spec.Containers",
		"undone the change of Spec.TerminationGracePeriodSeconds",
		"added a key to ObjectMeta.Labels",
		"added one more to Spec.Containers",
	}
	if difference := cmp.Diff(want, edits(was, is)); difference != "" {
		t.Errorf("typed (- want, + got):\n%s", difference)
	}
	loose, changed := fullUnstructured(), fullUnstructured()
	changed.SetLabels(map[string]string{"a": "b", "team": "blue"})
	want = []string{"undone the change of Object[metadata][labels][team]"}
	if difference := cmp.Diff(want, edits(loose, changed)); difference != "" {
		t.Errorf("unstructured (- want, + got):\n%s", difference)
	}
}

// hidden has a field that neither equality nor go-cmp may look at.
type hidden struct {
	corev1.Pod
	secret []string
}

func (h *hidden) DeepCopyObject() runtime.Object {
	return &hidden{*h.DeepCopy(), slices.Clone(h.secret)}
}

// TestSameAndDiff: objects with fields that are not exported are compared, too.
func TestSameAndDiff(t *testing.T) {
	one, other := &hidden{secret: []string{"a"}}, &hidden{secret: []string{"b"}}
	if same(one, other) || !same(one, one.DeepCopyObject()) {
		t.Error("compared wrongly")
	}
	if diff(one, other) == "" {
		t.Error("no difference is shown")
	}
	var none *corev1.Pod
	if !same(nil, none) || same(none, &corev1.Pod{}) {
		t.Error("nil compared wrongly")
	}
}
