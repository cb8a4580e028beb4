package reference

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// waitsForReady is why R2 is waived for all plugins that wait for their caches.
const waitsForReady = "WaitForReady knows no context: after the request was canceled it went on waiting, up to ten seconds; a limit of the Handler, not of this plugin"

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
		{"H2", "it relies on being called for CREATE alone: called for another operation, it creates the namespace", "plugin/pkg/admission/namespace/autoprovision/admission.go:93"},
		{"S1", "it creates the namespace for requests to whatever namespaced resource, custom ones too; that is what it is for", "plugin/pkg/admission/namespace/autoprovision/admission.go:68"},
		{"R2", waitsForReady, "staging/src/k8s.io/apiserver/pkg/admission/handler.go:71"},
		{"X1", "its call (create namespaces) is made with context.TODO(): it neither ends with the request nor carries its deadline; historical", "plugin/pkg/admission/namespace/autoprovision/admission.go:93"},
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
		{"H2", "it relies on not being called for CONNECT: called for one in a namespace that is not there, it refuses it", "plugin/pkg/admission/namespace/exists/admission.go:79"},
		{"S1", "it refuses requests to whatever resource in a namespace that is not there; that is what it is for", "plugin/pkg/admission/namespace/exists/admission.go:62"},
		{"R2", waitsForReady, "staging/src/k8s.io/apiserver/pkg/admission/handler.go:71"},
		{"X1", "its call (get namespaces) is made with context.TODO(): it neither ends with the request nor carries its deadline; historical", "plugin/pkg/admission/namespace/exists/admission.go:79"},
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
		framework.UpdateWith(ending, labelPod), framework.Delete(ending),
		framework.Create(internalNamespace("new")), framework.Delete(internalNamespace("present")), framework.Create(here),
		framework.Create(review).InNamespace("absent"),
		framework.Create(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}),
	}
	subject.Reject = []framework.Request{
		framework.Create(gone), framework.UpdateWith(gone, labelPod), framework.Create(ending), bindingOf(ending, "node"),
		framework.Delete(internalNamespace("default")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"H2", "it relies on not being called for CONNECT: called for one in a namespace that is not there, it refuses it", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:157"},
		{"H3", "all it does is refuse, and it does so in Admit: what is behind it can still change the request; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:77"},
		{"S1", "it refuses requests to whatever resource in a namespace that is not there; that is what it is for", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:84"},
		{"R2", waitsForReady, "staging/src/k8s.io/apiserver/pkg/admission/handler.go:71"},
		{"X1", "its call (get namespaces) is made with context.TODO(): it neither ends with the request nor carries its deadline; historical", "staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go:157"},
	}}
}
