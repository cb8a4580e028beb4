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
		{"H1", "Handles is true for any operation, including one that does not exist; intended", "plugin/pkg/admission/admit/admission.go:58"},
	}}
}

func alwaysDenyEntry() entry {
	subject := kubeSubject("AlwaysDeny")
	subject.Subresources = []string{contract.AnySubresource}
	subject.Reject = everyOperation()
	return entry{subject: subject, waivers: []waiver{
		{"H1", "Handles is true for any operation, including one that does not exist; intended", "plugin/pkg/admission/deny/admission.go:59"},
		{"H3", "it refuses in Admit and in Validate; intended", "plugin/pkg/admission/deny/admission.go:48"},
		{"S1", "it refuses requests for every resource; this is its purpose", "plugin/pkg/admission/deny/admission.go:48"},
	}}
}
