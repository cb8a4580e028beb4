package reference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

func taintEntry() entry {
	node := func(taints ...core.Taint) *core.Node {
		return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: core.NodeSpec{Taints: taints}}
	}
	subject := kubeSubject("TaintNodesByCondition")
	subject.Allow = []framework.Request{
		framework.Create(node()), framework.CreateOnUpdate(node()),
		framework.Create(node(core.Taint{Key: "dedicated", Value: "gpu", Effect: core.TaintEffectNoExecute})),
		framework.Create(node(core.Taint{Key: "node.kubernetes.io/not-ready", Effect: core.TaintEffectNoSchedule})),
		framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject}
}
