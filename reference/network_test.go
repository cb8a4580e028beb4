package reference

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"

	"github.com/admissiontest/admissiontest/framework"
)

// ingress is one with a default backend, which edits have changed.
func ingress(edits ...func(*networking.Ingress)) *networking.Ingress {
	made := &networking.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "i"},
		Spec: networking.IngressSpec{DefaultBackend: &networking.IngressBackend{
			Service: &networking.IngressServiceBackend{Name: "s", Port: networking.ServiceBackendPort{Number: 80}},
		}},
	}
	for _, edit := range edits {
		edit(made)
	}
	return made
}

func defaultIngressClassEntry() entry {
	class := func(name string, isDefault string, age time.Duration) *networkingv1.IngressClass {
		return &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault},
				CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-age)),
			},
			Spec: networkingv1.IngressClassSpec{Controller: "example.com/" + name},
		}
	}
	subject := kubeSubject("DefaultIngressClass",
		class("old", "true", time.Hour), class("b", "true", 0), class("a", "true", 0), class("plain", "false", 0))
	name := "plain"
	named := func(i *networking.Ingress) { i.Spec.IngressClassName = &name }
	annotated := func(i *networking.Ingress) {
		i.Annotations = map[string]string{"kubernetes.io/ingress.class": "plain"}
	}
	subject.Allow = []framework.Request{
		framework.Create(ingress()), framework.Create(ingress(named)), framework.Create(ingress(annotated)),
		framework.CreateOnUpdate(ingress()), framework.UpdateWith(ingress(named), annotated),
		framework.UpdateWith(ingress(named), func(i *networking.Ingress) {
			i.Status.LoadBalancer.Ingress = []networking.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		}).WithSubresource("status"),
		framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"C2", "the ingress gets a pointer to the name of the cached class: a write through it renames the class in the cache; not intended", "plugin/pkg/admission/network/defaultingressclass/admission.go:124"},
		{"R1", "it registers a ready function and never waits for it: before the cache has synced, ingresses are admitted without a class; not intended", "plugin/pkg/admission/network/defaultingressclass/admission.go:72"},
	}}
}

// service is one with these external IPs.
func service(ips ...string) *core.Service {
	return &core.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
		Spec: core.ServiceSpec{
			Type: core.ServiceTypeClusterIP, Ports: []core.ServicePort{{Port: 80, Protocol: core.ProtocolTCP}}, ExternalIPs: ips,
		},
	}
}

func denyExternalIPsEntry() entry {
	subject := kubeSubject("DenyServiceExternalIPs")
	exposed := func(ips ...string) func(*core.Service) {
		return func(s *core.Service) { s.Spec.ExternalIPs = ips }
	}
	const one, other = "192.0.2.1", "192.0.2.2"
	subject.Allow = []framework.Request{
		framework.Create(service()), framework.UpdateWith(service(one, other), exposed(other)), framework.UpdateWith(service(one), exposed()),
		framework.UpdateWith(service(one), exposed(other)).WithSubresource("status"), framework.Delete(service(one)),
		framework.Create(plainPod("default", "p")),
	}
	subject.Reject = []framework.Request{
		framework.Create(service(one)), framework.CreateOnUpdate(service(one)),
		framework.UpdateWith(service(), exposed(one)), framework.UpdateWith(service(one), exposed(one, other)),
	}
	return entry{subject: subject}
}
