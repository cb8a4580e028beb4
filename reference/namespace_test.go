package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs the internal types

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// namespaceEntries returns the plugins of this file and those beside it.
func namespaceEntries() map[string]func() entry {
	return map[string]func() entry{
		"AlwaysAdmit":                      alwaysAdmitEntry,
		"AlwaysDeny":                       alwaysDenyEntry,
		"NamespaceAutoProvision":           autoProvisionEntry,
		"NamespaceLifecycle":               lifecycleEntry,
		"NamespaceExists":                  existsEntry,
		"LimitPodHardAntiAffinityTopology": antiAffinityEntry,
		"LimitRanger":                      limitRangerEntry,
		"ServiceAccount":                   serviceAccountEntry,
		"NodeRestriction":                  nodeRestrictionEntry,
		"TaintNodesByCondition":            taintEntry,
		"AlwaysPullImages":                 pullImagesEntry,
		"ImagePolicyWebhook":               imagePolicyEntry,
		"PodSecurity":                      podSecurityEntry,
		"PodNodeSelector":                  nodeSelectorEntry,
		banFlunder:                         banFlunderEntry,
	}
}

// kubeSubject is a plugin of kube-apiserver, in a World of these objects. Requests have
// internal types, as kube-apiserver passes them.
func kubeSubject(name string, objects ...runtime.Object) contract.Subject {
	return contract.Subject{
		Source: fromKubernetes(name),
		World:  []fakes.Option{fakes.WithObjects(objects...)},
		Scheme: legacyscheme.Scheme,
	}
}

// plainPod is a pod with one container, as a user writes it.
func plainPod(namespace, name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "registry.example.com/main:1"}}},
	}
}

// podWith is a plainPod that edit has changed.
func podWith(namespace, name string, edit func(*core.Pod)) *core.Pod {
	pod := plainPod(namespace, name)
	edit(pod)
	return pod
}

// labelPod puts a label on a pod, as an update that is no concern of most plugins.
func labelPod(pod *core.Pod) { pod.Labels = map[string]string{"team": "blue"} }

// storedNamespace is a namespace of the World, active by default.
func storedNamespace(name string, edits ...func(*corev1.Namespace)) *corev1.Namespace {
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	for _, edit := range edits {
		edit(namespace)
	}
	return namespace
}

// internalNamespace is a namespace in a request.
func internalNamespace(name string) *core.Namespace {
	return &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// execInto is the connect of kubectl exec.
func execInto(pod *core.Pod) framework.Request {
	return framework.Connect(pod, "exec", &core.PodExecOptions{Stdout: true, Container: "main", Command: []string{"true"}})
}

// bindingOf is what the scheduler creates.
func bindingOf(pod *core.Pod, node string) framework.Request {
	binding := &core.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Target:     core.ObjectReference{Kind: "Node", Name: node},
	}
	return framework.Create(binding).WithSubresource("binding", pod)
}
