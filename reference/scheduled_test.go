package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// storedNode is a node of the World with these labels.
func storedNode(name string, labels map[string]string, edits ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, edit := range edits {
		edit(node)
	}
	return node
}

// onNode puts a pod on a node.
func onNode(node string) func(*core.Pod) { return func(pod *core.Pod) { pod.Spec.NodeName = node } }

// generation is the update of a pod's spec, whose generation the API server counts up.
func generation(edit func(*core.Pod)) func(*core.Pod) {
	return func(pod *core.Pod) {
		edit(pod)
		pod.Generation++
	}
}

// requests has the container of a pod ask for this much cpu and memory.
func requests(cpu, memory string) func(*core.Pod) {
	return func(pod *core.Pod) {
		pod.Spec.Containers[0].Resources.Requests = quantities[core.ResourceName]("cpu", cpu, "memory", memory)
	}
}

func topologyLabelsEntry() entry {
	zoned := map[string]string{"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "other": "x"}
	subject := kubeSubject("PodTopologyLabels", storedNode("zoned", zoned), storedNode("plain", map[string]string{"other": "x"}))
	subject.Subresources = []string{"binding"}
	subject.Enforced = []string{"metadata.labels[topology.kubernetes.io/region]", "metadata.labels[topology.kubernetes.io/zone]"}
	labeled := podWith("default", "p", func(pod *core.Pod) {
		pod.Spec.NodeName = "zoned"
		pod.Labels = map[string]string{"topology.kubernetes.io/zone": "mine", "team": "blue"}
	})
	toPod := &core.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Target: core.ObjectReference{Kind: "Pod", Name: "zoned"}}
	subject.Allow = []framework.Request{
		framework.Create(podWith("default", "p", onNode("zoned"))), framework.Create(labeled), framework.Create(plainPod("default", "p")),
		framework.Create(podWith("default", "p", onNode("plain"))), framework.Create(podWith("default", "p", onNode("absent"))),
		bindingOf(plainPod("default", "p"), "zoned"), bindingOf(plainPod("default", "p"), "plain"), bindingOf(plainPod("default", "p"), "absent"),
		framework.Create(toPod).WithSubresource("binding", plainPod("default", "p")),
		framework.UpdateWith(podWith("default", "p", onNode("zoned")), labelPod), execInto(podWith("default", "p", onNode("zoned"))),
	}
	return entry{subject: subject}
}

func declaredFeaturesEntry() entry {
	declaring := func(node *corev1.Node) {
		node.Status.DeclaredFeatures = []string{"InPlacePodVerticalScalingInitContainers"}
	}
	subject := kubeSubject("NodeDeclaredFeatureValidator", storedNode("new", nil, declaring), storedNode("old", nil))
	subject.Subresources = []string{"resize"}
	running := func(node string) *core.Pod {
		return podWith("default", "p", func(pod *core.Pod) {
			pod.Spec.NodeName = node
			pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
		})
	}
	resize := generation(func(pod *core.Pod) {
		pod.Spec.InitContainers[0].Resources.Requests = quantities[core.ResourceName]("cpu", "2")
	})
	image := generation(func(pod *core.Pod) { pod.Spec.Containers[0].Image = "registry.example.com/main:2" })
	update := func(node string, edit func(*core.Pod)) framework.Request {
		return framework.UpdateWith(running(node), edit)
	}
	subject.Allow = []framework.Request{
		update("new", resize).WithSubresource("resize"), update("new", resize), update("old", image), update("", resize), update("old", labelPod),
		update("old", resize).WithSubresource("status"), framework.Create(running("old")), execInto(running("old")),
	}
	subject.Reject = []framework.Request{
		update("old", resize).WithSubresource("resize"), update("old", resize), update("absent", resize).WithSubresource("resize"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"I1", "without feature gates ValidateInitialization returns nil and the plugin is off; not intended: similar plugins require them", "plugin/pkg/admission/nodedeclaredfeatures/admission.go:98"},
		{"R3", "it asks only its cache: a pod bound to a node that the cache does not have yet cannot be updated; not intended", "plugin/pkg/admission/nodedeclaredfeatures/admission.go:185"},
	}}
}

func podResizeEntry() entry {
	sized := func(node *corev1.Node) {
		node.Status.Allocatable = quantities[corev1.ResourceName]("cpu", "2", "memory", "1Gi")
	}
	subject := kubeSubject("PodResizeValidator",
		storedNode("small", map[string]string{"kubernetes.io/os": "linux"}, sized), storedNode("unlabeled", nil, sized),
		storedNode("windows", map[string]string{"kubernetes.io/os": "windows"}, sized))
	subject.Subresources = []string{"resize"}
	resize := func(node string, edit func(*core.Pod)) framework.Request {
		return framework.UpdateWith(podWith("default", "p", onNode(node)), edit).WithSubresource("resize")
	}
	fits, grows, eats := generation(requests("1", "64Mi")), generation(requests("3", "64Mi")), generation(requests("3", "2Gi"))
	subject.Allow = []framework.Request{
		resize("small", fits), resize("unlabeled", fits), resize("", grows), resize("small", labelPod),
		framework.UpdateWith(podWith("default", "p", onNode("small")), labelPod), framework.UpdateWith(podWith("default", "p", onNode("small")), grows),
		framework.Create(podWith("default", "p", onNode("small"))), execInto(podWith("default", "p", onNode("small"))),
	}
	subject.Reject = []framework.Request{
		resize("small", grows), resize("small", eats), resize("windows", fits), resize("absent", fits),
	}
	return entry{subject: subject, waivers: []waiver{
		{"I1", "without feature gates ValidateInitialization returns nil and the plugin is off; not intended: similar plugins require them", "plugin/pkg/admission/podresize/admission.go:85"},
		{"R3", "it asks only its cache: a pod on a node that the cache does not have yet cannot be resized; not intended", "plugin/pkg/admission/podresize/admission.go:141"},
	}}
}
