package reference

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// everyOperation are requests of each operation.
func everyOperation() []framework.Request {
	pod := plainPod("default", "p")
	return []framework.Request{
		framework.Create(pod), framework.UpdateWith(pod, labelPod), framework.Delete(pod),
		framework.DeleteCollection(pod), execInto(pod), framework.Create(internalNamespace("n")),
	}
}

func alwaysAdmitEntry() entry {
	subject := kubeSubject("AlwaysAdmit")
	subject.Allow = everyOperation()
	return entry{subject: subject, waivers: []waiver{
		{"H1", "Handles is true whatever it is asked, an operation that there is none of among them; meant", "plugin/pkg/admission/admit/admission.go:58"},
	}}
}

func alwaysDenyEntry() entry {
	subject := kubeSubject("AlwaysDeny")
	subject.Subresources = []string{contract.AnySubresource}
	subject.Reject = everyOperation()
	return entry{subject: subject, waivers: []waiver{
		{"H1", "Handles is true whatever it is asked, an operation that there is none of among them; meant", "plugin/pkg/admission/deny/admission.go:59"},
		{"H3", "it refuses in Admit, and again in Validate; meant", "plugin/pkg/admission/deny/admission.go:48"},
		{"S1", "it refuses requests to whatever resource; that is what it is for", "plugin/pkg/admission/deny/admission.go:48"},
	}}
}
