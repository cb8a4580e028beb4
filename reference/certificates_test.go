package reference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

// signerRequest asks a signer for a certificate.
func signerRequest(signer string) *certificates.CertificateSigningRequest {
	return &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: certificates.CertificateSigningRequestSpec{
			SignerName: signer, Request: []byte("not looked at"), Username: "jane", Usages: []certificates.KeyUsage{certificates.UsageClientAuth},
		},
	}
}

// judged adds what an approver says.
func judged(kind certificates.RequestConditionType) func(*certificates.CertificateSigningRequest) {
	return func(r *certificates.CertificateSigningRequest) {
		r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{Type: kind, Status: core.ConditionTrue, Reason: "Seen"})
	}
}

func approvalEntry() entry {
	subject := kubeSubject("CertificateApproval")
	subject.Subresources = []string{"approval"}
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{fakes.InjectAuthorizer(fakes.Deny().Unless("approver", "approve", "signers"))}
	}
	approve := func(kind certificates.RequestConditionType) framework.Request {
		return framework.UpdateWith(signerRequest("example.com/s"), judged(kind)).WithSubresource("approval")
	}
	bare := framework.UpdateWith(signerRequest("bare"), judged(certificates.CertificateApproved)).WithSubresource("approval")
	subject.Allow = []framework.Request{
		approve(certificates.CertificateApproved).As("approver"), approve(certificates.CertificateDenied).As("approver"), bare.As("approver"),
		framework.UpdateWith(signerRequest("example.com/s"), judged(certificates.CertificateApproved)).WithSubresource("status").As("jane"),
		framework.UpdateWith(signerRequest("example.com/s"), func(r *certificates.CertificateSigningRequest) { r.Labels = map[string]string{"team": "blue"} }).As("jane"),
		framework.Create(signerRequest("example.com/s")).As("jane"),
	}
	subject.Reject = []framework.Request{approve(certificates.CertificateApproved).As("jane"), bare.As("jane")}
	return entry{subject: subject}
}

func signingEntry() entry {
	subject := kubeSubject("CertificateSigning")
	subject.Subresources = []string{"status"}
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{fakes.InjectAuthorizer(fakes.Deny().Unless("signer", "sign", "signers"))}
	}
	sign := func(edit func(*certificates.CertificateSigningRequest)) framework.Request {
		return framework.UpdateWith(signerRequest("example.com/s"), edit).WithSubresource("status")
	}
	issue := func(r *certificates.CertificateSigningRequest) { r.Status.Certificate = []byte("issued") }
	label := func(r *certificates.CertificateSigningRequest) { r.Labels = map[string]string{"team": "blue"} }
	subject.Allow = []framework.Request{
		sign(issue).As("signer"), sign(judged(certificates.CertificateFailed)).As("signer"), sign(label).As("jane"),
		framework.UpdateWith(signerRequest("example.com/s"), label).As("jane"), framework.Create(signerRequest("example.com/s")).As("jane"),
		framework.UpdateWith(signerRequest("example.com/s"), judged(certificates.CertificateApproved)).WithSubresource("approval").As("jane"),
	}
	subject.Reject = []framework.Request{sign(issue).As("jane"), sign(judged(certificates.CertificateFailed)).As("jane")}
	return entry{subject: subject}
}
