package harness_test

import (
	"context"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/example"
)

func changing[T any](edit func(T)) harness.Source {
	return plugin(func(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
		edit(a.GetObject().(T))
		return nil
	}, nil)
}

func TestChanges(t *testing.T) {
	seed := func(p *corev1.Pod) {
		p.Labels = map[string]string{"a": "b", "gone": "x"}
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}, {Key: "l"}}
	}
	for _, test := range []struct {
		name string
		edit func(*corev1.Pod)
		want []string
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"nothing by another name", func(p *corev1.Pod) {
			p.Annotations, p.Spec.Volumes = map[string]string{}, []corev1.Volume{}
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1000m")
		}, nil},
		{"a key that was absent", func(p *corev1.Pod) { p.Annotations = map[string]string{"example.com/a": "b"} }, []string{"metadata.annotations[example.com/a]"}},
		{"keys", func(p *corev1.Pod) { p.Labels["a"] = "c"; delete(p.Labels, "gone") }, []string{"metadata.labels[a]", "metadata.labels[gone]"}},
		{"a field", func(p *corev1.Pod) { p.Spec.HostIPC = true }, []string{"spec.hostIPC"}},
		{"a longer list", func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{}) }, []string{"spec.tolerations[2]"}},
		{"a shorter list", func(p *corev1.Pod) { p.Spec.Tolerations = nil }, []string{"spec.tolerations[0]", "spec.tolerations[1]"}},
		{"an element", func(p *corev1.Pod) { p.Spec.Tolerations[1].Key = "m" }, []string{"spec.tolerations[1].key"}},
		{"a pointer", func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} }, []string{"spec.securityContext"}},
		{"a quantity", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") }, []string{"spec.containers[0].resources.limits[cpu]"}},
		{"a time", func(p *corev1.Pod) { p.CreationTimestamp = metav1.Now() }, []string{"metadata.creationTimestamp"}},
		{"the kind", func(p *corev1.Pod) { p.Kind = "Pod" }, []string{"kind"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := harness.New(t, changing(test.edit)).Do(framework.Create(pod("p", seed))).MustAllow(t)
			if diff := cmp.Diff(test.want, result.Changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangesOfUnstructured(t *testing.T) {
	edit := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"a": "b"})
		_ = unstructured.SetNestedField(u.Object, true, "spec", "hostIPC")
		_ = unstructured.SetNestedField(u.Object, "x", "spec", "with a", "b/c")
	}
	result := harness.New(t, changing(edit)).Do(framework.Create(pod("p", func(p *corev1.Pod) { p.Labels = map[string]string{} })).AsUnstructured()).MustAllow(t)
	want := []string{"metadata.labels", "spec.hostIPC", "spec[with a]"}
	if diff := cmp.Diff(want, result.Changes()); diff != "" {
		t.Error(diff)
	}
}

func TestChangesOfInternalTypes(t *testing.T) {
	edit := func(p *example.Pod) {
		p.Labels = map[string]string{"a": "b"}
		p.Spec.NodeName, p.Spec.NodeSelector = "n", map[string]string{"c": "d"}
	}
	h := harness.New(t, changing(edit), harness.WithScheme(exampleScheme()), harness.WithWorld(worldOfExamples(t)))
	result := h.Do(framework.Create(&example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})).MustAllow(t)
	want := []string{"metadata.labels[a]", "spec.nodeName", "spec.nodeSelector[c]"}
	if diff := cmp.Diff(want, result.Changes()); diff != "" {
		t.Error(diff)
	}
	if got := (harness.Result{}).Changes(); got != nil {
		t.Error(got)
	}
}
