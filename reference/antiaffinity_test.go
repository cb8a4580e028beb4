package reference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

func antiAffinityEntry() entry {
	apart := func(topology string) *core.Pod {
		return podWith("default", "p", func(pod *core.Pod) {
			pod.Spec.Affinity = &core.Affinity{PodAntiAffinity: &core.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []core.PodAffinityTerm{{
					TopologyKey:   topology,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
				}},
			}}
		})
	}
	subject := kubeSubject("LimitPodHardAntiAffinityTopology")
	nameless := apart("topology.kubernetes.io/zone")
	nameless.Name, nameless.GenerateName = "", "p-"
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(apart("kubernetes.io/hostname")),
		framework.UpdateWith(plainPod("default", "p"), labelPod), bindingOf(apart("topology.kubernetes.io/zone"), "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(apart("topology.kubernetes.io/zone")), framework.Create(nameless),
		framework.UpdateWith(apart("topology.kubernetes.io/zone"), labelPod),
	}
	return entry{subject: subject}
}
