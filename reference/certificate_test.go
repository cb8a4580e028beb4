package reference

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

// trustBundle is a bundle of a signer; none signs an empty one.
func trustBundle(signer string) *certificates.ClusterTrustBundle {
	return &certificates.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com:signer:b"},
		Spec:       certificates.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: "-----BEGIN CERTIFICATE-----"},
	}
}

func trustBundleEntry() entry {
	subject := kubeSubject("ClusterTrustBundleAttest")
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{
			fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"ClusterTrustBundle": true})),
			fakes.InjectAuthorizer(fakes.Deny().Unless("signer", "attest", "signers")),
		}
	}
	trust := func(bundle *certificates.ClusterTrustBundle) { bundle.Spec.TrustBundle += "\n" }
	collected := func(bundle *certificates.ClusterTrustBundle) { bundle.Finalizers = []string{"example.com/f"} }
	const signer = "example.com/signer"
	subject.Allow = []framework.Request{
		framework.Create(trustBundle(signer)).As("signer"), framework.UpdateWith(trustBundle(signer), trust).As("signer"),
		framework.Create(trustBundle("")), framework.UpdateWith(trustBundle(signer), collected),
		framework.Delete(trustBundle(signer)), framework.Create(plainPod("default", "p")),
	}
	subject.Reject = []framework.Request{
		framework.Create(trustBundle(signer)), framework.UpdateWith(trustBundle(signer), trust),
	}
	return entry{subject: subject, waivers: []waiver{
		{"P3", "it compares the resource and not the subresource: it refuses a status like the bundle itself; harmless as long as bundles have no subresource", "plugin/pkg/admission/certificates/ctbattest/admission.go:96"},
		{"Y1", "without the right to attest, the user may change only what the garbage collector changes; intended", "plugin/pkg/admission/certificates/ctbattest/admission.go:119"},
	}}
}

// signingRequest asks for a certificate of an organization.
func signingRequest(signer, organization string) *certificates.CertificateSigningRequest {
	request := &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr"},
		Spec: certificates.CertificateSigningRequestSpec{
			SignerName: signer, Usages: []certificates.KeyUsage{certificates.UsageClientAuth}, Request: []byte("not a request"),
		},
	}
	if organization == "" {
		return request
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return request
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "jane", Organization: []string{organization}},
	}, key)
	if err != nil {
		return request
	}
	request.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return request
}

func subjectRestrictionEntry() entry {
	const client = "kubernetes.io/kube-apiserver-client"
	subject := kubeSubject("CertificateSubjectRestriction")
	approve := func(request *certificates.CertificateSigningRequest) {
		request.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateApproved, Status: "True"}}
	}
	masters := signingRequest(client, "system:masters")
	subject.Allow = []framework.Request{
		framework.Create(signingRequest(client, "developers")), framework.Create(signingRequest("example.com/signer", "system:masters")),
		framework.UpdateWith(masters, approve).WithSubresource("approval"), framework.UpdateWith(masters, approve).WithSubresource("status"),
		framework.Create(plainPod("default", "p")),
	}
	subject.Reject = []framework.Request{framework.Create(masters), framework.Create(signingRequest(client, ""))}
	return entry{subject: subject}
}
