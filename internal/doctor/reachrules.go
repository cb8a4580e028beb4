package doctor

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// reachRules returns the rules about whether the API server can call a webhook.
func reachRules() []Rule {
	return []Rule{
		{
			ID: "CF-REACH-1", Name: "service-is-ready", Level: framework.Must,
			Fix:    "create the Service, or correct clientConfig.service; delete the configuration if the webhook is gone",
			Source: []string{issue("volcano-sh/volcano/issues/2102"), issue("kai-scheduler/KAI-Scheduler/issues/751"), issue("open-policy-agent/gatekeeper/issues/747")},
			Check:  each(checkService),
		},
		{
			ID: "CF-REACH-2", Name: "port-is-right", Level: framework.Must,
			Fix:    "set clientConfig.service.port to a port of the Service",
			Source: []string{issue("kubernetes/kubernetes/issues/61510"), issue("cruise-automation/k-rail/pull/76"), issue("microcumulus/ca-injector/pull/4"), typesSource},
			Check:  each(checkPort),
		},
		{
			ID: "CF-REACH-3", Name: "ca-bundle", Level: framework.Must,
			Fix:    "set caBundle to the certificate of the CA that signs the certificate of the webhook, or let cert-manager inject it",
			Source: []string{issue("cert-manager/cert-manager/issues/5519"), issue("rancher/rancher/issues/54775"), typesSource},
			Check:  each(checkBundle),
		},
		{
			ID: "CF-REACH-5", Name: "url-works-everywhere", Level: framework.Should,
			Fix:    "use clientConfig.service for a webhook in the cluster, and a host name that every API server resolves for others",
			Source: []string{typesSource},
			Check:  each(checkURL),
		},
	}
}

func checkService(c *checker, h *webhook) {
	b := h.backend
	if b == nil {
		return
	}
	bad := func(format string, arguments ...any) {
		message := fmt.Sprintf(format, arguments...) + ": each request that the webhook matches is refused"
		if !h.fails {
			message = fmt.Sprintf(format, arguments...) + ": the webhook is off, because failurePolicy is Ignore"
		}
		c.webhook(h, "clientConfig.service", Finding{Severity: c.severity(h, ""), Request: everyRequest, Message: message})
	}
	switch {
	case b.service == nil && b.unknown != "":
		c.inconclusive(h.configuration, b.unknown)
	case b.service == nil:
		bad("Service %s does not exist", b)
	case b.service.GetDeletionTimestamp() != nil:
		bad("Service %s is being deleted", b)
	case b.spec.Type == corev1.ServiceTypeExternalName:
	case b.service.manifest == nil:
		if !c.ready(b) {
			bad("Service %s has no ready endpoint", b)
		}
	case len(b.spec.Selector) == 0 || len(b.pods) > 0 || slices.ContainsFunc(b.workloads, func(w workload) bool { return w.replicas() > 0 }):
	case len(b.workloads) > 0:
		bad("%s, which Service %s selects, has no replicas", b.workloads[0], b)
	default: // a controller can make the workload
		c.inconclusive(h.configuration, "no workload is in the files whose Pods Service "+b.String()+" selects")
	}
}

// ready reports whether a Service of a cluster has a ready endpoint.
func (w *world) ready(b *backend) bool {
	return slices.ContainsFunc(w.list("EndpointSlice.discovery.k8s.io", b.namespace), func(o *object) bool {
		return o.GetLabels()[discoveryv1.LabelServiceName] == b.name && slices.ContainsFunc(as[discoveryv1.EndpointSlice](o).Endpoints, func(e discoveryv1.Endpoint) bool {
			return ptr.Deref(e.Conditions.Ready, true)
		})
	})
}

func checkPort(c *checker, h *webhook) {
	b := h.backend
	if b == nil {
		return
	}
	if b.service == nil {
		if b.unknown != "" {
			c.inconclusive(h.configuration, b.unknown)
		}
		return
	}
	want := ptr.Deref(h.ClientConfig.Service.Port, defaultServicePort)
	at := slices.IndexFunc(b.spec.Ports, func(p corev1.ServicePort) bool { return p.Port == want })
	if at < 0 {
		var ports []string
		for _, port := range b.spec.Ports {
			ports = append(ports, fmt.Sprint(port.Port))
		}
		c.webhook(h, "clientConfig.service.port", Finding{Severity: c.severity(h, ""), Request: everyRequest, Message: fmt.Sprintf("Service %s has no port %d; it has %s", b, want, strings.Join(ports, ", "))})
		return
	}
	port := b.spec.Ports[at]
	target := cmp.Or(port.TargetPort.IntVal, want)
	if name := port.TargetPort.StrVal; name != "" {
		if len(b.workloads) == 0 {
			return
		}
		if target = b.workloads[0].port(name); target == 0 {
			c.webhook(h, "clientConfig.service.port", Finding{Severity: c.severity(h, ""), Request: everyRequest, Message: fmt.Sprintf("port %d of Service %s leads to the port %q of its Pods, which no container of %s has", want, b, name, b.workloads[0])})
			return
		}
	}
	if target != 443 && target != 10250 && b.spec.Type != corev1.ServiceTypeExternalName {
		only := *c
		only.rule.Level = framework.May
		only.inconclusive(h.configuration, fmt.Sprintf("Service %s leads to port %d of its Pods: the firewall of a private cluster, which often allows API servers only 443 and 10250, needs a rule for it", b, target))
	}
}

// port returns the number of the port with a name of a container of a workload, or 0.
func (w workload) port(name string) int32 {
	pod := w.spec.Template.Spec
	for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, p := range container.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// injects reports whether an annotation asks for a caBundle.
func injects(o *object) bool {
	return slices.ContainsFunc([]string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca", "service.beta.openshift.io/inject-cabundle"}, func(key string) bool {
		return o.GetAnnotations()[key] != ""
	})
}

// setsConfigurations returns a role in the files with which a controller can set fields of configurations, or nil.
func (w *world) setsConfigurations(o *object) *object {
	resource := strings.ToLower(o.GetKind()) + "s"
	has := func(values []string, want ...string) bool {
		return slices.ContainsFunc(values, func(value string) bool { return value == "*" || slices.Contains(want, value) })
	}
	for _, role := range slices.Concat(w.byKind[clusterRoles], w.byKind["Role.rbac.authorization.k8s.io"]) {
		if role.manifest != nil && slices.ContainsFunc(as[rbacv1.ClusterRole](role).Rules, func(r rbacv1.PolicyRule) bool {
			return has(r.APIGroups, admissionregistrationv1.GroupName) && has(r.Resources, resource) && has(r.Verbs, "update", "patch")
		}) {
			return role
		}
	}
	return nil
}

// setAtRunTime returns why a controller may set a field of a configuration of the files at run time, or "" if the files show that none may: a
// role allows it, or they have not what serves the webhook, with the bindings of its account.
func (c *checker) setAtRunTime(h *webhook) string {
	if h.configuration.manifest == nil || h.backend == nil {
		return ""
	}
	if role := c.setsConfigurations(h.configuration); role != nil {
		return fmt.Sprintf("a controller with %s can set this at run time", role)
	}
	bindings := slices.Concat(c.byKind["ClusterRoleBinding.rbac.authorization.k8s.io"], c.byKind["RoleBinding.rbac.authorization.k8s.io"])
	if slices.ContainsFunc(h.backend.workloads, func(serves workload) bool {
		account := cmp.Or(serves.spec.Template.Spec.ServiceAccountName, "default")
		return account == "default" || slices.ContainsFunc(bindings, func(o *object) bool {
			return slices.ContainsFunc(as[rbacv1.ClusterRoleBinding](o).Subjects, func(s rbacv1.Subject) bool { return s.Name == account })
		})
	}) {
		return ""
	}
	return "the files do not show whether a controller may set this at run time"
}

func checkBundle(c *checker, h *webhook) {
	bad := func(severity Severity, message string) {
		c.webhook(h, "clientConfig.caBundle", Finding{Severity: severity, Request: everyRequest, Message: message})
	}
	bundle := bytes.TrimSpace(h.ClientConfig.CABundle)
	if len(bundle) == 0 && h.backend != nil {
		c.emptyBundle(h, bad)
	}
	if len(bundle) == 0 {
		return
	}
	certificates, err := cert.ParseCertsPEM(bundle)
	if len(certificates) == 0 {
		bad(c.severity(h, ""), "the caBundle is not PEM, or has no certificate: "+fmt.Sprint(err))
		return
	}
	slices.SortFunc(certificates, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	first, last := certificates[0].NotAfter, certificates[len(certificates)-1].NotAfter
	switch {
	case last.Before(c.input.Now):
		bad(c.severity(h, ""), "every certificate of the caBundle has expired, the last on "+last.UTC().Format(time.DateOnly))
	case first.Before(c.input.Now):
		bad(Warning, "a certificate of the caBundle has expired on "+first.UTC().Format(time.DateOnly))
	case first.Before(c.input.Now.AddDate(0, 0, 30)):
		bad(Warning, "a certificate of the caBundle expires on "+first.UTC().Format(time.DateOnly))
	}
}

// emptyBundle checks a webhook without a caBundle.
func (c *checker) emptyBundle(h *webhook, bad func(Severity, string)) {
	o := h.configuration
	why := c.setAtRunTime(h)
	switch {
	case injects(o) && o.manifest != nil:
		c.injected(h, bad)
	case injects(o) && c.input.Now.Sub(o.GetCreationTimestamp().Time) < 5*time.Minute:
		c.inconclusive(o, "the caBundle is empty, and the configuration is younger than 5 minutes: it may still be injected")
	case injects(o):
		bad(c.severity(h, ""), "an annotation asks for a caBundle, but none was injected")
	case why != "":
		c.inconclusive(o, "the caBundle is empty, and "+why)
	default:
		bad(c.severity(h, ""), "the caBundle is empty, and no annotation asks for one: the API server uses the CAs of its system, which sign no certificate for a Service")
	}
}

// injected compares the annotation for cert-manager with the Certificates of the same files.
func (c *checker) injected(h *webhook, bad func(Severity, string)) {
	const key = "cert-manager.io/inject-ca-from"
	value, host := h.configuration.GetAnnotations()[key], h.backend.name+"."+h.backend.namespace+".svc"
	namespace, name, _ := strings.Cut(value, "/")
	var right, given []string // Certificates for the Service, and the dnsNames of the one that is named
	var named *object
	for _, o := range c.list("Certificate.cert-manager.io", "") {
		hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
		if isCA, _, _ := unstructured.NestedBool(o.Object, "spec", "isCA"); isCA { // of a Certificate that can be anywhere
			hosts = nil
		}
		if (&x509.Certificate{DNSNames: hosts}).VerifyHostname(host) == nil {
			right = append(right, o.GetNamespace()+"/"+o.GetName())
		}
		if o.GetName() == name && (o.GetNamespace() == namespace || o.GetNamespace() == "") {
			named, given = o, hosts
		}
	}
	problem := ""
	switch {
	case value == "":
	case len(validation.IsDNS1123Subdomain(namespace))+len(validation.IsDNS1123Subdomain(name)) > 0:
		problem = fmt.Sprintf("%s is %q, which is not NAMESPACE/NAME of a Certificate: cert-manager injects no caBundle", key, value)
	case named == nil && len(right) > 0:
		problem = fmt.Sprintf("%s is %q, which is no Certificate of the files; %s is for Service %s", key, value, strings.Join(right, ", "), h.backend)
	case len(given) > 0 && len(right) == 0 && h.backend.service != nil:
		problem = fmt.Sprintf("Certificate %s is for %s, not for %s, which the API server calls", value, strings.Join(given, ", "), host)
	}
	if problem != "" {
		bad(c.severity(h, ""), problem)
	}
}

func checkURL(c *checker, h *webhook) {
	if h.ClientConfig.URL == nil {
		return
	}
	bad := func(severity Severity, message string) {
		c.webhook(h, "clientConfig.url", Finding{Severity: severity, Request: everyRequest, Message: message})
	}
	u, err := url.Parse(*h.ClientConfig.URL)
	if err != nil {
		bad(Error, "the url is malformed; the API server refuses the configuration")
		return
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	switch {
	case u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || host == "":
		bad(Error, "the url has another scheme than https, no host, or a user, query or fragment; the API server refuses the configuration")
	case host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback():
		bad(Warning, "the host is the machine of the API server itself: every replica needs a webhook beside it")
	case strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc."):
		bad(Warning, "the host is a name in the DNS of the cluster, which API servers need not use")
	}
}
