package reference

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// tolerates has a pod bear a taint for ever.
func tolerates(key string, effect core.TaintEffect) func(*core.Pod) {
	return func(pod *core.Pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, core.Toleration{Key: key, Operator: core.TolerationOpExists, Effect: effect})
	}
}

// requesting has the first container of a pod ask for resources.
func requesting(pairs ...string) func(*core.Pod) {
	return func(pod *core.Pod) {
		pod.Spec.Containers[0].Resources.Requests = quantities[core.ResourceName](pairs...)
		pod.Spec.Containers[0].Resources.Limits = quantities[core.ResourceName](pairs...)
	}
}

func tolerationSecondsEntry() entry {
	subject := kubeSubject("DefaultTolerationSeconds")
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.CreateOnUpdate(plainPod("default", "p")),
		framework.Create(podWith("default", "p", tolerates("dedicated", core.TaintEffectNoSchedule))),
		framework.Create(podWith("default", "p", tolerates(corev1.TaintNodeNotReady, core.TaintEffectNoExecute))),
		framework.Create(podWith("default", "p", tolerates(corev1.TaintNodeUnreachable, ""))),
		framework.Create(podWith("default", "p", tolerates("", ""))),
		framework.UpdateWith(plainPod("default", "p"), labelPod), bindingOf(plainPod("default", "p"), "node"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"C3", "all pods share the TolerationSeconds pointer of the plugin; not intended", "plugin/pkg/admission/defaulttolerationseconds/admission.go:157"},
	}}
}

func resourceTolerationEntry() entry {
	subject := kubeSubject("ExtendedResourceToleration")
	inInit := podWith("default", "p", func(pod *core.Pod) {
		pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1", Resources: core.ResourceRequirements{
			Requests: quantities[core.ResourceName]("example.com/fpga", "1"), Limits: quantities[core.ResourceName]("example.com/fpga", "1"),
		}}}
	})
	partly := podWith("default", "p", requesting("example.com/gpu", "1"))
	partly.Spec.Tolerations = []core.Toleration{{Key: "example.com/gpu", Operator: core.TolerationOpEqual, Value: "a100", Effect: core.TaintEffectNoSchedule}, {Key: "dedicated", Operator: core.TolerationOpExists}}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(podWith("default", "p", requesting("cpu", "1"))),
		framework.Create(podWith("default", "p", requesting("example.com/gpu", "1", "example.com/nic", "2", "cpu", "1"))),
		framework.Create(inInit), framework.CreateOnUpdate(partly),
		framework.UpdateWith(podWith("default", "p", requesting("example.com/gpu", "1")), labelPod),
		bindingOf(inInit, "node"),
	}
	return entry{subject: subject}
}

// tolerationNamespace is a namespace with the annotations of the plugin; "-" is none.
func tolerationNamespace(name, byDefault, whitelist string) *corev1.Namespace {
	return storedNamespace(name, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{"example.com/other": "x"}
		if byDefault != "-" {
			n.Annotations["scheduler.alpha.kubernetes.io/defaultTolerations"] = byDefault
		}
		if whitelist != "-" {
			n.Annotations["scheduler.alpha.kubernetes.io/tolerationsWhitelist"] = whitelist
		}
	})
}

func tolerationRestrictionEntry() entry {
	const head = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"
	const dedicated = `[{"key":"dedicated","operator":"Exists","effect":"NoSchedule"}]`
	subject := kubeSubject("PodTolerationRestriction",
		storedNamespace("plain"), tolerationNamespace("annotated", "-", "-"), tolerationNamespace("blue", dedicated, dedicated),
		tolerationNamespace("open", "", ""), tolerationNamespace("strict", "-", dedicated),
		tolerationNamespace("contradictory", `[{"key":"other","operator":"Exists"}]`, dedicated), tolerationNamespace("broken", "[", "-"), tolerationNamespace("misguarded", "", "["))
	// Three defaults: a slice to which three elements were appended has capacity for a fourth.
	subject.Config = head + "default:\n- {key: a, operator: Exists}\n- {key: b, operator: Exists, effect: NoExecute, tolerationSeconds: 60}\n- {key: c, operator: Equal, value: x}\n" +
		"whitelist:\n- {key: a, operator: Exists}\n- {key: b, operator: Exists}\n- {key: c, operator: Exists}\n- {key: dedicated, operator: Exists}\n- {key: node.kubernetes.io/memory-pressure, operator: Exists}\n"
	subject.Configs.Valid = []string{head}
	subject.Configs.Invalid = []string{head + "default:\n- {key: a, operator: Sometimes}\n", head + "whitelist: {}\n"}
	dedicatedPod := func(namespace string) *core.Pod {
		return podWith(namespace, "p", tolerates("dedicated", core.TaintEffectNoSchedule))
	}
	alien := func(namespace string) *core.Pod {
		return podWith(namespace, "p", tolerates("alien", core.TaintEffectNoSchedule))
	}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("plain", "p")), framework.Create(podWith("plain", "p", requesting("cpu", "1"))), framework.Create(plainPod("annotated", "p")),
		framework.Create(plainPod("blue", "p")), framework.Create(dedicatedPod("blue")), framework.CreateOnUpdate(plainPod("open", "p")), framework.Create(alien("open")),
		framework.UpdateWith(dedicatedPod("strict"), labelPod), framework.UpdateWith(podWith("plain", "p", requesting("cpu", "1")), labelPod),
		framework.UpdateWith(dedicatedPod("strict"), tolerates("dedicated", core.TaintEffectNoSchedule)),
		framework.Delete(dedicatedPod("blue")), bindingOf(alien("blue"), "node"),
	}
	subject.Reject = []framework.Request{
		framework.Create(alien("plain")), framework.Create(alien("blue")), framework.Create(plainPod("strict", "p")), framework.Create(plainPod("contradictory", "p")),
		framework.UpdateWith(dedicatedPod("strict"), tolerates("alien", core.TaintEffectNoSchedule)), framework.Create(plainPod("absent", "p")),
		framework.Create(plainPod("broken", "p")), framework.Create(alien("misguarded")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"C3", "all pods share the TolerationSeconds pointers of the configured defaults; not intended", "plugin/pkg/admission/podtolerationrestriction/admission.go:111"},
		{"E1", "it refuses tolerations that are not in the whitelist, and pods of a namespace whose annotation is not JSON, with a plain error: 500; not intended", "plugin/pkg/admission/podtolerationrestriction/admission.go:145"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/podtolerationrestriction/admission.go:210"},
		{"K2", "it ignores unknown and repeated fields: the codec is not strict; historical", "plugin/pkg/admission/podtolerationrestriction/config.go:33"},
	}}
}
