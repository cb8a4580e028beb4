package check

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// loosePod is as an internal type: it has no names in JSON.
type loosePod struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec struct{ NodeName string }
}

func (p *loosePod) DeepCopyObject() runtime.Object { return p }

func TestHasField(t *testing.T) {
	for _, test := range []struct {
		object  runtime.Object
		path    string
		similar string // empty: the field exists
	}{
		{&corev1.Pod{}, "metadata.labels", ""},
		{&corev1.Pod{}, "metadata.labels[topology.kubernetes.io/region]", ""},
		{&corev1.Pod{}, "kind", ""},
		{&corev1.Pod{}, "spec.containers[].image", ""},
		{&corev1.Pod{}, "spec.containers[3].image", ""},
		{&corev1.Pod{}, "spec.containers[].resources.limits[cpu]", ""},
		{&corev1.Pod{}, "spec.volumes[].image.pullPolicy", ""},
		{&corev1.Pod{}, "metadata.label", "metadata.labels"},
		{&corev1.Pod{}, "metadata.labels.team", "metadata.labels[team]"},
		{&corev1.Pod{}, "spec.containers.image", "spec.containers[].image"},
		{&corev1.Pod{}, "spec.containres[].image", "spec.containers[].image"},
		{&corev1.Pod{}, "spec.nodeName.more", "none"},
		{&corev1.Pod{}, "", "none"},
		{&loosePod{}, "metadata.labels[team]", ""},
		{&loosePod{}, "spec.nodeName", ""},
		{&loosePod{}, "spec.nodeNam", "spec.nodeName"},
		{&unstructured.Unstructured{}, "spec.anything", ""},
	} {
		t.Run(fmt.Sprintf("%T %s", test.object, test.path), func(t *testing.T) {
			ok, similar := HasField(test.object, test.path)
			if ok != (test.similar == "") || !ok && test.similar != "none" && !slices.Contains(similar, test.similar) {
				t.Errorf("%T %q: %t, %q; want %q", test.object, test.path, ok, similar, test.similar)
			}
		})
	}
}
