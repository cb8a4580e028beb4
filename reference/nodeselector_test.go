package reference

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// selectingNamespace is a namespace with a node selector.
func selectingNamespace(name, selector string) *corev1.Namespace {
	return storedNamespace(name, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": selector}
	})
}

func nodeSelectorEntry() entry {
	subject := kubeSubject("PodNodeSelector",
		storedNamespace("plain"), storedNamespace("guarded"), selectingNamespace("blue", "env=blue,disk=ssd"), selectingNamespace("allowed", "env=test"), selectingNamespace("broken", "env in (a"))
	subject.Config = "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: zone=a\n  guarded: env=test\n  allowed: env=test\n"
	subject.Configs.Invalid = []string{"podNodeSelectorPluginConfig: [env=test]\n", "podNodeSelectorPluginConfig:\n  guarded: env in (a\n"}
	on := func(namespace, key, value string) *core.Pod {
		return podWith(namespace, "p", func(pod *core.Pod) { pod.Spec.NodeSelector = map[string]string{key: value} })
	}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("plain", "p")), framework.Create(on("plain", "gpu", "yes")), framework.Create(plainPod("blue", "p")),
		framework.Create(on("blue", "env", "blue")), framework.Create(plainPod("allowed", "p")), bindingOf(plainPod("blue", "p"), "node"),
		framework.UpdateWith(plainPod("blue", "p"), labelPod),
	}
	subject.Reject = []framework.Request{
		framework.Create(on("blue", "env", "green")), framework.Create(on("allowed", "gpu", "yes")), framework.Create(plainPod("guarded", "p")),
		framework.Create(plainPod("broken", "p")), framework.Create(plainPod("absent", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"E1", "for a namespace whose selector cannot be parsed it returns a plain error, and for one that does not exist InternalError: the client gets 500; not intended", "plugin/pkg/admission/podnodeselector/admission.go:229"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/podnodeselector/admission.go:227"},
		{"K1", "it ignores a configuration that it cannot read, and runs without any selector; not intended", "plugin/pkg/admission/podnodeselector/admission.go:90"},
		{"K2", "it ignores unknown and repeated fields; the format has no version", "plugin/pkg/admission/podnodeselector/admission.go:88"},
	}}
}
