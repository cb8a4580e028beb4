package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// reachRules returns the rules about whether the API server can call a webhook.
func reachRules() []Rule {
	return []Rule{
		{
			ID: "CF-REACH-1", Name: "service-is-ready", Level: framework.Must,
			Title:  "The Service of the webhook exists and has a ready endpoint.",
			Why:    "With failurePolicy Fail, each request that the webhook matches is refused. With Ignore, the webhook is off, and no request shows it.",
			When:   "the Namespace or Service does not exist or is being deleted, no EndpointSlice has a ready address, or the selector selects no Pod",
			Fix:    "create the Service, or correct clientConfig.service; delete the configuration if the webhook is gone",
			Source: []string{issue("volcano-sh/volcano/issues/2102"), issue("kai-scheduler/KAI-Scheduler/issues/751"), issue("open-policy-agent/gatekeeper/issues/747")},
			Check:  each(checkService),
		},
		{
			ID: "CF-REACH-2", Name: "port-is-right", Level: framework.Must,
			Title:  "The port of the webhook is a port of its Service, and of its Pods.",
			Why:    "The API server cannot connect.",
			When:   "the Service has no port with the number in clientConfig.service.port, which is 443 if it is not set, or its targetPort is a name that no container has",
			Fix:    "set clientConfig.service.port to a port of the Service",
			Source: []string{issue("kubernetes/kubernetes/issues/61510"), issue("cruise-automation/k-rail/pull/76"), issue("microcumulus/ca-injector/pull/4"), typesSource},
			Check:  each(checkPort),
		},
		{
			ID: "CF-REACH-3", Name: "ca-bundle", Level: framework.Must,
			Title:  "The caBundle has certificates that are valid, and stay so.",
			Why:    "The API server trusts no certificate of the webhook and refuses, or ignores, each call.",
			When:   "caBundle is empty for a Service and no annotation asks cert-manager or OpenShift to set it; or it is not PEM, has no certificate, or only certificates that have expired; a warning if the first one expires in less than 30 days",
			Fix:    "set caBundle to the certificate of the CA that signs the certificate of the webhook, or let cert-manager inject it",
			Source: []string{issue("cert-manager/cert-manager/issues/5519"), issue("rancher/rancher/issues/54775"), typesSource},
			Check:  each(checkBundle),
		},
		{
			ID: "CF-REACH-4", Name: "certificate-verifies", Level: framework.Must,
			Title:  "The API server can connect, and the certificate of the webhook verifies for its host name.",
			Why:    "The API server refuses, or ignores, each call.",
			When:   "a dry run (--dial) ends with an error of the connection: name, refused, timeout, chain, host name, expiry",
			Fix:    "depends on the cause: see the message",
			Source: []string{issue("open-policy-agent/gatekeeper/issues/1045"), issue("boxboat/dockhand-secrets-operator/issues/17"), issue("open-policy-agent/cert-controller/issues/13")},
			Check:  checkDialed,
		},
		{
			ID: "CF-REACH-5", Name: "url-works-everywhere", Level: framework.Should,
			Title:  "A url can be called from every API server.",
			Why:    "Each replica of the API server calls the webhook itself, outside of the network and the DNS of the cluster.",
			When:   "the host is localhost or a loopback address, a name that only the DNS of the cluster has, or the ClusterIP of a Service; the scheme is not https; there is a user, query or fragment",
			Fix:    "use clientConfig.service for a webhook in the cluster, and a host name that every API server resolves for others",
			Source: []string{typesSource},
			Check:  checkURL,
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
		c.webhook(h, "clientConfig.service", Finding{Severity: c.severity(h, ""), Request: "every request that the webhook matches", Message: message})
	}
	space, spaceUnknown := c.get("Namespace", "", b.namespace)
	switch {
	case c.onCluster && space == nil && spaceUnknown == "":
		bad("namespace %s does not exist", b.namespace)
	case space != nil && space.GetDeletionTimestamp() != nil:
		bad("namespace %s is being deleted", b.namespace)
	case b.service == nil && b.unknown != "":
		c.inconclusive(h.configuration, b.unknown)
	case b.service == nil:
		bad("Service %s does not exist", b)
	case b.service.GetDeletionTimestamp() != nil:
		bad("Service %s is being deleted", b)
	default:
		c.endpoints(h, bad)
	}
}

// endpoints checks that a Service has a ready endpoint: in EndpointSlices on a cluster, in workloads for files.
func (c *checker) endpoints(h *webhook, bad func(string, ...any)) {
	b := h.backend
	if b.service.text("spec", "type") == "ExternalName" {
		return
	}
	slicesOf, unknown := c.list("EndpointSlice.discovery.k8s.io", b.namespace)
	if unknown == "" && b.service.manifest == nil {
		for _, slice := range slicesOf {
			if slice.GetLabels()["kubernetes.io/service-name"] != b.name {
				continue
			}
			for _, item := range slice.list("endpoints") {
				endpoint, _ := item.(map[string]any)
				if ready, set, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); ready || !set {
					return
				}
			}
		}
		bad("Service %s has no ready endpoint", b)
		return
	}
	if c.onCluster && b.service.manifest == nil {
		c.inconclusive(h.configuration, unknown)
		return
	}
	selector, _, _ := unstructured.NestedStringMap(b.service.Object, "spec", "selector")
	if slices.ContainsFunc(b.workloads, func(o *object) bool { return replicasOf(o) > 0 || o.GetKind() == "DaemonSet" }) || len(selector) == 0 || len(b.pods) > 0 {
		return
	}
	if len(b.workloads) > 0 {
		bad("%s, which Service %s selects, has no replicas", b.workloads[0], b)
		return
	}
	near, _ := c.list("Deployment.apps", b.namespace)
	if len(near) == 0 {
		c.inconclusive(h.configuration, "no workload is in the files whose Pods Service "+b.String()+" selects")
		return
	}
	bad("Service %s selects the Pods of no workload of its namespace", b)
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
	want := int64(ptr.Deref(h.ClientConfig.Service.Port, defaultServicePort))
	var ports []string
	var target any
	found := false
	for _, item := range b.service.list("spec", "ports") {
		port, _ := item.(map[string]any)
		number, _, _ := unstructured.NestedInt64(port, "port")
		ports = append(ports, fmt.Sprint(number))
		if number == want {
			found, target = true, port["targetPort"]
		}
	}
	every := "every request that the webhook matches"
	name, named := target.(string)
	switch {
	case !found:
		c.webhook(h, "clientConfig.service.port", Finding{Severity: c.severity(h, ""), Request: every, Message: fmt.Sprintf("Service %s has no port %d; it has %s", b, want, strings.Join(ports, ", "))})
	case named && len(b.workloads) > 0 && !hasPort(b.workloads[0], name):
		c.webhook(h, "clientConfig.service.port", Finding{Severity: c.severity(h, ""), Request: every, Message: fmt.Sprintf("port %d of Service %s leads to the port %q of its Pods, which no container of %s has", want, b, name, b.workloads[0])})
	}
}

// hasPort reports whether a container of a workload has a port with a name.
func hasPort(workload *object, name string) bool {
	for _, containers := range []string{"containers", "initContainers"} {
		for _, item := range workload.list("spec", "template", "spec", containers) {
			container, _ := item.(map[string]any)
			ports, _ := container["ports"].([]any)
			for _, port := range ports {
				fields, _ := port.(map[string]any)
				if fields["name"] == name {
					return true
				}
			}
		}
	}
	return false
}

// injects reports whether an annotation asks for a caBundle.
func injects(o *object) bool {
	for _, key := range []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca", "service.beta.openshift.io/inject-cabundle"} {
		if o.GetAnnotations()[key] != "" {
			return true
		}
	}
	return false
}

// setsConfigurations returns a role in the files with which a controller can set fields of configurations, or nil.
func (w *world) setsConfigurations(o *object) *object {
	resource := strings.ToLower(o.GetKind()) + "s"
	for _, kind := range []string{"ClusterRole.rbac.authorization.k8s.io", "Role.rbac.authorization.k8s.io"} {
		for _, role := range w.byKind[kind] {
			for _, item := range role.list("rules") {
				rule, _ := item.(map[string]any)
				has := func(field string, want ...string) bool {
					values, _, _ := unstructured.NestedStringSlice(rule, field)
					return slices.ContainsFunc(values, func(value string) bool { return value == "*" || slices.Contains(want, value) })
				}
				if has("apiGroups", "admissionregistration.k8s.io") && has("resources", resource) && has("verbs", "update", "patch") && role.manifest != nil {
					return role
				}
			}
		}
	}
	return nil
}

func checkBundle(c *checker, h *webhook) {
	bundle := bytes.TrimSpace(h.ClientConfig.CABundle)
	every := "every request that the webhook matches"
	bad := func(severity Severity, message string) {
		c.webhook(h, "clientConfig.caBundle", Finding{Severity: severity, Request: every, Message: message})
	}
	if len(bundle) == 0 {
		if h.backend != nil {
			c.emptyBundle(h, bad)
		}
		return
	}
	var certificates []*x509.Certificate
	var problem error
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			problem = err
			continue
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		text := "the caBundle is not PEM, or has no certificate"
		if problem != nil {
			text += ": " + problem.Error()
		}
		bad(c.severity(h, ""), text)
		return
	}
	first, last := certificates[0].NotAfter, certificates[0].NotAfter
	for _, certificate := range certificates {
		if certificate.NotAfter.Before(first) {
			first = certificate.NotAfter
		}
		if certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
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
	live := o.manifest == nil
	role := c.setsConfigurations(o)
	switch {
	case injects(o) && !live:
	case injects(o) && c.input.Now.Sub(o.GetCreationTimestamp().Time) < 5*time.Minute:
		c.inconclusive(o, "the caBundle is empty, and the configuration is younger than 5 minutes: it may still be injected")
	case injects(o):
		bad(c.severity(h, ""), "an annotation asks for a caBundle, but none was injected")
	case !live && role != nil:
		c.inconclusive(o, fmt.Sprintf("the caBundle is empty, and a controller with %s can set it at run time", role))
	default:
		bad(c.severity(h, ""), "the caBundle is empty, and no annotation asks for one: the API server uses the CAs of its system, which sign no certificate for a Service")
	}
}

func checkDialed(c *checker) {
	switch {
	case c.input.Cluster == nil:
		c.undecided(framework.Unsupported, nil, "files have no running webhook: give --kubeconfig and --dial")
	case c.input.Cluster.Dialed == nil:
		c.undecided(framework.Skipped, nil, "no request was sent: give --dial")
	default:
		c.dialed(c.input.Cluster.Dialed)
	}
}

func (c *checker) dialed(all []Dialed) {
	for _, h := range c.chosen() {
		at := slices.IndexFunc(all, func(d Dialed) bool { return d.Configuration == h.configuration.String() && d.Webhook == h.Name })
		switch {
		case h.configuration.manifest != nil:
			c.inconclusive(h.configuration, "it is a file: the webhook is not called")
		case at < 0 || all[at].Request == "":
			reason := "no dry run calls the webhook"
			if at >= 0 {
				reason = all[at].Problem
			}
			c.inconclusive(h.configuration, h.Name+": "+reason)
		case all[at].Cause != "":
			c.webhook(h, "clientConfig", Finding{Severity: c.severity(h, ""), Request: all[at].Request, Message: "the webhook cannot be reached (" + all[at].Cause + "): " + all[at].Problem})
		}
	}
}

func checkURL(c *checker) {
	services, servicesUnknown := c.list("Service", "")
	for _, h := range c.chosen() {
		if h.ClientConfig.URL == nil {
			continue
		}
		bad := func(severity Severity, message string) {
			c.webhook(h, "clientConfig.url", Finding{Severity: severity, Request: "every request that the webhook matches", Message: message})
		}
		u, err := url.Parse(*h.ClientConfig.URL)
		if err != nil {
			bad(Error, "the url is malformed; the API server refuses the configuration")
			continue
		}
		host := strings.TrimSuffix(u.Hostname(), ".")
		address := net.ParseIP(host)
		cluster := slices.IndexFunc(services, func(o *object) bool { return address != nil && o.text("spec", "clusterIP") == host })
		switch {
		case u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || host == "":
			bad(Error, "the url has another scheme than https, no host, or a user, query or fragment; the API server refuses the configuration")
		case host == "localhost" || strings.HasSuffix(host, ".localhost") || address.IsLoopback():
			bad(Warning, "the host is the machine of the API server itself: every replica needs a webhook beside it")
		case strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc."):
			bad(Warning, "the host is a name in the DNS of the cluster, which API servers need not use")
		case cluster >= 0:
			bad(Warning, "the host is the ClusterIP of Service "+services[cluster].GetNamespace()+"/"+services[cluster].GetName()+": use clientConfig.service")
		case address != nil && servicesUnknown != "" && c.onCluster:
			c.inconclusive(h.configuration, servicesUnknown)
		}
	}
}
