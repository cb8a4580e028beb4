package check

import (
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
		object runtime.Object
		has    []string
		lacks  []string
	}{
		{&corev1.Pod{}, []string{
			"metadata.labels", "metadata.labels[topology.kubernetes.io/region]", "kind", "spec.containers[].image", "spec.containers[3].image",
			"spec.containers[].resources.limits[cpu]", "spec.volumes[].image.pullPolicy",
		}, []string{"metadata.label", "metadata.labels.team", "spec.containers.image", "spec.containres[].image", "spec.nodeName.more", ""}},
		{&loosePod{}, []string{"metadata.labels[team]", "spec.nodeName"}, []string{"spec.nodeNam"}},
		{&unstructured.Unstructured{}, []string{"spec.anything"}, nil},
	} {
		for _, path := range append(test.has, test.lacks...) {
			if got, want := HasField(test.object, path), slices.Contains(test.has, path); got != want {
				t.Errorf("%T %q: got %t, want %t", test.object, path, got, want)
			}
		}
	}
}
