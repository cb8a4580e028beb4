package reference

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

func runtimeClassEntry() entry {
	class := func(name string, edits ...func(*nodev1.RuntimeClass)) *nodev1.RuntimeClass {
		made := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runsc"}
		for _, edit := range edits {
			edit(made)
		}
		return made
	}
	heavy := func(c *nodev1.RuntimeClass) {
		c.Overhead = &nodev1.Overhead{PodFixed: quantities[corev1.ResourceName]("cpu", "100m", "memory", "64Mi")}
	}
	seconds := int64(60)
	scheduled := func(c *nodev1.RuntimeClass) {
		c.Scheduling = &nodev1.Scheduling{
			NodeSelector: map[string]string{"runtime": "gvisor"},
			Tolerations: []corev1.Toleration{
				{Key: "sandbox", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
				{Key: "sandbox", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			},
		}
	}
	subject := kubeSubject("RuntimeClass", class("bare"), class("heavy", heavy), class("scheduled", scheduled), class("full", heavy, scheduled))
	of := func(name string, edits ...func(*core.Pod)) *core.Pod {
		return podWith("default", "p", func(pod *core.Pod) {
			pod.Spec.RuntimeClassName = &name
			for _, edit := range edits {
				edit(pod)
			}
		})
	}
	overhead := func(cpu string) func(*core.Pod) {
		return func(pod *core.Pod) {
			pod.Spec.Overhead = quantities[core.ResourceName]("cpu", cpu, "memory", "64Mi")
		}
	}
	on := func(key, value string) func(*core.Pod) {
		return func(pod *core.Pod) { pod.Spec.NodeSelector = map[string]string{key: value} }
	}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(of("bare")), framework.Create(of("heavy")), framework.Create(of("heavy", overhead("100m"))),
		framework.Create(of("scheduled")), framework.CreateOnUpdate(of("full")), framework.Create(of("full", on("zone", "a"), tolerates("other", core.TaintEffectNoSchedule))),
		framework.Create(of("scheduled", on("runtime", "gvisor"), tolerates("sandbox", ""))),
		framework.UpdateWith(of("heavy"), labelPod), bindingOf(of("absent"), "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(of("absent")), framework.Create(of("heavy", overhead("200m"))), framework.Create(of("scheduled", on("runtime", "runc"))),
		framework.Create(of("bare", overhead("100m"))), framework.Create(podWith("default", "p", overhead("100m"))),
	}
	return entry{subject: subject, waivers: []waiver{
		{"V3", "Validate checks the overhead and not the node selector: one that conflicts with that of the class, set by a later webhook, is stored; not intended", "plugin/pkg/admission/runtimeclass/admission.go:127"},
		{"C2", "overhead, node selector and tolerationSeconds of the pod share memory with the class in the cache: the conversion copies nothing; not intended", "plugin/pkg/admission/runtimeclass/admission.go:182"},
	}}
}
