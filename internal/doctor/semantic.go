package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// semanticRules returns the rules about other fields.
func semanticRules() []Rule {
	return []Rule{
		{
			ID: "CF-SEM-1", Name: "dry-run-is-possible", Level: framework.Must,
			Fix:    "set sideEffects to None, or to NoneOnDryRun for a webhook that writes something except for dry runs",
			Source: []string{issue("argoproj/argo-cd/issues/23752"), issue("actions/actions-runner-controller/issues/266"), issue("sse-secure-systems/connaisseur/pull/170")},
			Check:  each(checkSideEffects),
		},
		{
			ID: "CF-SEM-2", Name: "review-versions", Level: framework.Must,
			Fix:    "answer reviews of version v1, and list v1 first",
			Source: []string{issue("open-policy-agent/gatekeeper/issues/1270"), issue("aws/amazon-eks-pod-identity-webhook/pull/255"), issue("hashicorp/vault-k8s/issues/257")},
			Check:  each(checkReviewVersions),
		},
		{
			ID: "CF-SEM-3", Name: "mutators-expect-each-other", Level: framework.Should,
			Fix:    "mutate either Pods or their templates",
			Source: []string{issue("istio/istio/pull/45233"), issue("open-telemetry/opentelemetry-operator/issues/3349"), issue("dapr/dapr/pull/6350"), issue("kubewarden/helm-charts/issues/374")},
			Check:  each(checkGenerated),
		},
		{
			ID: "CF-SEM-4", Name: "names", Level: framework.Must,
			Fix:    "name the webhook after the kind and your domain: pods.example.com",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/admissionregistration/validation/validation.go", issue("metallb/metallb-operator/issues/170")},
			Check:  checkNames,
		},
		{
			ID: "CF-SEM-6", Name: "version-is-served", Level: framework.Must,
			Fix:    "use admissionregistration.k8s.io/v1, and set failurePolicy, matchPolicy, timeoutSeconds and sideEffects: their defaults differ",
			Source: []string{"https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22"},
			Check:  checkServedVersion,
		},
	}
}

func checkSideEffects(c *checker, h *webhook) {
	if h.SideEffects != nil && slices.Contains([]admissionregistrationv1.SideEffectClass{admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun}, *h.SideEffects) {
		return
	}
	given := "missing"
	if h.SideEffects != nil {
		given = string(*h.SideEffects)
	}
	c.webhook(h, "sideEffects", Finding{Severity: Error, Request: "every dry run of a request that the webhook matches", Message: "sideEffects is " + given + ": API servers refuse the configuration in v1, and every dry run in older versions"})
}

func checkReviewVersions(c *checker, h *webhook) {
	switch {
	case slices.Contains(h.AdmissionReviewVersions, "v1"):
	case slices.Contains(h.AdmissionReviewVersions, "v1beta1"):
		c.webhook(h, "admissionReviewVersions", Finding{Severity: Warning, Request: everyRequest, Message: "the webhook only speaks v1beta1, which is deprecated"})
	default:
		c.webhook(h, "admissionReviewVersions", Finding{Severity: Error, Request: everyRequest, Message: fmt.Sprintf("no API server knows a version of the list [%s]", strings.Join(h.AdmissionReviewVersions, ", "))})
	}
}

// checkGenerated checks that a webhook that mutates Pods does not mutate the objects that controllers make for them.
func checkGenerated(c *checker, h *webhook) {
	pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller"})
	if !h.mutates || !c.reaches(h, pod).called {
		return
	}
	for _, resource := range []string{"replicasets.apps", "jobs.batch", "controllerrevisions.apps"} {
		p := newProbe(c.world, about{operation: "CREATE", resource: resource, namespace: ordinary, name: "app-1", user: "deployment-controller", object: c.world.workloadSpec(nil)})
		if c.reaches(h, p).called {
			c.webhook(h, "rules", Finding{Severity: Warning, Request: p.text, Message: "the webhook mutates Pods and also the objects that controllers make of templates: if it changes the template there, the controller sees a difference and creates another object"})
			return
		}
	}
}

func checkNames(c *checker) {
	seen := map[string]bool{}
	for _, h := range c.chosen() {
		if len(strings.Split(h.Name, ".")) < 3 {
			c.webhook(h, "name", Finding{Severity: Error, Message: fmt.Sprintf("%q has fewer than three segments; the API server refuses the configuration", h.Name)})
		}
		if seen[h.key()] {
			c.webhook(h, "name", Finding{Severity: Error, Message: fmt.Sprintf("two webhooks have the name %q; the API server refuses the configuration", h.Name)})
		}
		seen[h.key()] = true
	}
}

func checkServedVersion(c *checker) {
	for _, o := range c.given {
		if version := o.GroupVersionKind().Version; strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && version != "v1" && c.judged(o) {
			c.add(o, "apiVersion", Finding{Severity: Error, Message: fmt.Sprintf("API servers do not serve %s of %s", version, o.GetKind())})
		}
	}
}
