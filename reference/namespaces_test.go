package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

func autoProvisionEntry() entry {
	subject := kubeSubject("NamespaceAutoProvision", storedNamespace("present"))
	subject.Subresources = []string{contract.AnySubresource} // it looks at the namespace alone
	subject.Allow = []framework.Request{
		framework.Create(plainPod("absent", "p")),
		framework.Create(plainPod("present", "p")),
		framework.CreateOnUpdate(plainPod("missing", "p")),
		framework.Create(internalNamespace("new")),
		framework.Create(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}),
		bindingOf(plainPod("vanished", "p"), "node"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"S1", "it creates the namespace for requests for every namespaced resource, including custom resources; this is its purpose", "plugin/pkg/admission/namespace/autoprovision/admission.go:68"},
		{"X1", "its call (create namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/namespace/autoprovision/admission.go:93"},
	}}
}

func existsEntry() entry {
	subject := kubeSubject("NamespaceExists", storedNamespace("present"))
	subject.Subresources = []string{contract.AnySubresource} // it looks at the namespace alone
	here, gone := plainPod("present", "p"), plainPod("absent", "p")
	subject.Allow = []framework.Request{
		framework.Create(here), framework.UpdateWith(here, labelPod), framework.Delete(here),
		framework.Create(internalNamespace("new")),
		framework.Create(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}),
	}
	subject.Reject = []framework.Request{
		framework.Create(gone), framework.UpdateWith(gone, labelPod), framework.Delete(gone), framework.DeleteCollection(gone),
	}
	return entry{subject: subject, waivers: []waiver{
		{"S1", "it refuses requests for every resource in a namespace that does not exist; this is its purpose", "plugin/pkg/admission/namespace/exists/admission.go:62"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "plugin/pkg/admission/namespace/exists/admission.go:79"},
	}}
}

func lifecycleEntry() entry {
	subject := kubeSubject("NamespaceLifecycle", storedNamespace("present"), storedNamespace("default"),
		storedNamespace("ending", func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }))
	subject.Subresources = []string{contract.AnySubresource} // it looks at the namespace alone
	here, ending, gone := plainPod("present", "p"), plainPod("ending", "p"), plainPod("absent", "p")
	review := &authorization.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: "absent"},
		Spec:       authorization.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &authorization.ResourceAttributes{Namespace: "absent", Verb: "get", Resource: "pods"}},
	}
	subject.Allow = []framework.Request{
		framework.Create(here), framework.UpdateWith(here, labelPod), framework.Delete(gone),
		framework.UpdateWith(ending, labelPod), framework.UpdateWith(gone, labelPod), framework.Delete(ending),
		framework.Create(internalNamespace("new")), framework.Delete(internalNamespace("present")), framework.Create(here),
		framework.Create(review).InNamespace("absent"),
		framework.Create(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}),
	}
	subject.Reject = []framework.Request{
		framework.Create(gone), framework.Create(ending), bindingOf(ending, "node"),
		framework.Delete(internalNamespace("default")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"H3", "it only refuses, and does so in Admit: later plugins and webhooks can still change the request; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:77"},
		{"S1", "it refuses requests for every resource in a namespace that does not exist; this is its purpose", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:84"},
		{"X1", "its call (get namespaces) uses context.TODO(): it does not end with the request and has no deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:162"},
	}}
}
