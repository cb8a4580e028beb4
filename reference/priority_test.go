package reference

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	gatestesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/features"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// storedPriority is a class of the World.
func storedPriority(name string, value int32, edits ...func(*schedulingv1.PriorityClass)) *schedulingv1.PriorityClass {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	for _, edit := range edits {
		edit(class)
	}
	return class
}

// priorityClass is one in a request.
func priorityClass(name string, byDefault bool) *scheduling.PriorityClass {
	return &scheduling.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 7, GlobalDefault: byDefault}
}

// podGroup is one in a request, of a class.
func podGroup(class string, edits ...func(*scheduling.PodGroup)) *scheduling.PodGroup {
	group := &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"},
		Spec: scheduling.PodGroupSpec{
			PriorityClassName: class,
			SchedulingPolicy:  scheduling.PodGroupSchedulingPolicy{Gang: &scheduling.GangSchedulingPolicy{MinCount: 2}},
		},
	}
	for _, edit := range edits {
		edit(group)
	}
	return group
}

// withGroupPreemption turns on, for the process, the gate of priorities of pod groups.
func withGroupPreemption(t *testing.T, _ *contract.Subject) {
	gatestesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gatestesting.FeatureOverrides{
		features.GenericWorkload: true,
	})
}

func priorityEntry() entry {
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	subject := kubeSubject("Priority",
		storedPriority("usual", 100, func(c *schedulingv1.PriorityClass) { c.GlobalDefault, c.PreemptionPolicy = true, &lower }),
		storedPriority("also-usual", 100, func(c *schedulingv1.PriorityClass) { c.GlobalDefault = true }),
		storedPriority("patient", 500, func(c *schedulingv1.PriorityClass) { c.PreemptionPolicy = &never }),
		storedPriority("high", 1000))
	of := func(class string, edits ...func(*core.Pod)) *core.Pod {
		return podWith("default", "p", func(pod *core.Pod) {
			pod.Spec.PriorityClassName = class
			for _, edit := range edits {
				edit(pod)
			}
		})
	}
	number := func(n int32) func(*core.Pod) { return func(pod *core.Pod) { pod.Spec.Priority = &n } }
	policy := func(p core.PreemptionPolicy) func(*core.Pod) {
		return func(pod *core.Pod) { pod.Spec.PreemptionPolicy = &p }
	}
	groupOf := func(class string, n int32) *scheduling.PodGroup {
		return podGroup(class, func(g *scheduling.PodGroup) { g.Spec.Priority = &n })
	}
	forget := func(pod *core.Pod) {
		labelPod(pod)
		pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil
	}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(of("high")), framework.Create(of("patient")),
		framework.Create(of("high", number(1000))), framework.CreateOnUpdate(of("patient", policy(core.PreemptNever))),
		framework.UpdateWith(of("patient", number(500), policy(core.PreemptNever)), forget),
		framework.UpdateWith(of("high", number(1000)), labelPod), framework.Delete(of("high")),
		framework.Create(priorityClass("low", false)), framework.Delete(priorityClass("usual", true)),
		framework.Create(podGroup("high")), framework.Create(podGroup("")), framework.Create(groupOf("high", 1000)),
		bindingOf(of("high"), "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(of("absent")), framework.Create(of("high", number(7))), framework.Create(of("patient", policy(core.PreemptLowerPriority))),
		framework.Create(priorityClass("another", true)),
		framework.UpdateWith(priorityClass("low", false), func(c *scheduling.PriorityClass) { c.GlobalDefault = true }),
		framework.Create(podGroup("absent")), framework.Create(groupOf("high", 7)),
	}
	return entry{subject: subject, start: withGroupPreemption, waivers: []waiver{
		{"O2", "on update it sets priority and preemption policy to the pointers of the old pod; not intended", "plugin/pkg/admission/priority/admission.go:167"},
		{"R1", "before the cache of classes has synced, a pod without a class gets priority 0 instead of that of the default class, and a second default class is admitted; it registers HasSynced and never waits for it", "plugin/pkg/admission/priority/admission.go:330"},
		{"I5", "it reads the global gate GenericWorkload for each PodGroup; no gates are injected", "plugin/pkg/admission/priority/admission.go:204"},
		{"T2", "of two default classes with the same value it uses the first one from the lister; only one default is expected", "plugin/pkg/admission/priority/admission.go:339"},
		{"V3", "Validate looks only at PriorityClasses: the class and the number of a pod or group, changed by a later webhook, are not checked again; historical", "plugin/pkg/admission/priority/admission.go:130"},
		{"R3", "it asks only its cache: a pod is refused right after its PriorityClass was created; not intended", "plugin/pkg/admission/priority/admission.go:363"},
	}}
}
