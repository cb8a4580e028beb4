package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
)

// semanticRules returns the rules about other fields.
func semanticRules() []Rule {
	return []Rule{
		{
			ID: "CF-SEM-1", Name: "dry-run-is-possible", Level: framework.Must,
			Title:  "sideEffects is None or NoneOnDryRun.",
			Why:    "Every dry run of a matched resource is refused, with failurePolicy Ignore too: kubectl diff, server-side dry runs and GitOps previews. API servers refuse such a configuration in v1.",
			When:   "sideEffects is missing, Unknown or Some",
			Fix:    "set sideEffects to None, or to NoneOnDryRun for a webhook that writes something except for dry runs",
			Source: []string{issue("argoproj/argo-cd/issues/23752"), issue("actions/actions-runner-controller/issues/266"), issue("sse-secure-systems/connaisseur/pull/170")},
			Check:  each(checkSideEffects),
		},
		{
			ID: "CF-SEM-2", Name: "review-versions", Level: framework.Must,
			Title:  "admissionReviewVersions has v1.",
			Why:    "An API server sends the first version in the list that it knows. It refuses a configuration without one.",
			When:   "no version in the list is known to API servers; a warning if v1beta1 is the only one",
			Fix:    "answer reviews of version v1, and list v1 first",
			Source: []string{issue("open-policy-agent/gatekeeper/issues/1270"), issue("aws/amazon-eks-pod-identity-webhook/pull/255"), issue("hashicorp/vault-k8s/issues/257")},
			Check:  each(checkReviewVersions),
		},
		{
			ID: "CF-SEM-3", Name: "mutators-expect-each-other", Level: framework.Should,
			Title:  "Mutating webhooks of one object expect each other.",
			Why:    "A webhook does not see what a later one adds, such as a sidecar. A webhook that changes Pods and the objects that create them makes controllers see a difference that they did not write.",
			When:   "two mutating webhooks of different backends are called for the creation of Pods, and none has reinvocationPolicy IfNeeded: a note; one webhook mutates Pods and also ReplicaSets, Jobs or ControllerRevisions",
			Fix:    "set reinvocationPolicy to IfNeeded in a webhook that must see what others add; mutate either Pods or their templates",
			Source: []string{issue("istio/istio/pull/45233"), issue("open-telemetry/opentelemetry-operator/issues/3349"), issue("dapr/dapr/pull/6350"), issue("kubewarden/helm-charts/issues/374")},
			Check:  checkMutators,
		},
		{
			ID: "CF-SEM-4", Name: "names", Level: framework.Must,
			Title:  "Names are valid, unique and telling.",
			Why:    "The API server refuses the configuration, or another project overwrites it.",
			When:   "the name of a webhook has fewer than three segments, or is there twice; the name of the configuration ends with .static.k8s.io; a note for the generic names validating-webhook-configuration and mutating-webhook-configuration",
			Fix:    "name the webhook after the kind and your domain: pods.example.com; give the configuration the name of your project",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/admissionregistration/validation/validation.go", issue("metallb/metallb-operator/issues/170")},
			Check:  checkNames,
		},
		{
			ID: "CF-SEM-5", Name: "open-or-closed", Level: framework.May,
			Title:  "Failing open or closed is a decision.",
			Why:    "With failurePolicy Ignore, a check does not happen while the webhook does not answer. With Fail, a webhook that only adds defaults stops all creation.",
			When:   "a validating webhook has failurePolicy Ignore, or a mutating webhook has Fail",
			Fix:    "check the final object with a validating webhook or policy that fails closed, and let mutating webhooks fail open",
			Source: []string{goodPractices, issue("gardener/gardener/issues/7013"), issue("kubernetes/website/issues/33039")},
			Check:  each(checkOpen),
		},
		{
			ID: "CF-SEM-6", Name: "version-is-served", Level: framework.Must,
			Title:  "The configuration has a version that API servers serve.",
			Why:    "The configuration cannot be created. Kubernetes removed admissionregistration.k8s.io/v1beta1 of webhook configurations in 1.22. its defaults differ from the defaults of v1.",
			When:   "a webhook configuration has another version than v1",
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
		c.webhook(h, "admissionReviewVersions", Finding{Severity: Warning, Request: "every request that the webhook matches", Message: "the webhook only speaks v1beta1, which is deprecated"})
	default:
		c.webhook(h, "admissionReviewVersions", Finding{Severity: Error, Request: "every request that the webhook matches", Message: fmt.Sprintf("no API server knows a version of the list [%s]", strings.Join(h.AdmissionReviewVersions, ", "))})
	}
}

// ordered matches names that try to set the order of webhooks.
func ordered() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+|a+|z+)[-.]`) }

func checkMutators(c *checker) {
	pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller", object: podSpec()})
	var called []*webhook
	again := false
	for _, h := range c.webhooks {
		if !h.mutates || !c.reaches(h, pod).called {
			continue
		}
		if c.judged(h.configuration) {
			c.generated(h)
		}
		if !slices.ContainsFunc(called, func(other *webhook) bool { return other.address() == h.address() }) {
			called = append(called, h)
		}
		again = again || ptr.Deref(h.ReinvocationPolicy, "") == admissionregistrationv1.IfNeededReinvocationPolicy
	}
	mine := slices.IndexFunc(called, func(h *webhook) bool { return c.judged(h.configuration) })
	if len(called) < 2 || again || mine < 0 {
		return
	}
	severity := Note
	var more []string
	for _, h := range called {
		more = append(more, h.Name+" of "+h.configuration.String())
		if ordered().MatchString(h.configuration.GetName()) {
			severity = Warning
		}
	}
	c.webhook(called[mine], "reinvocationPolicy", Finding{Severity: severity, Request: pod.text, More: more, Message: "several mutating webhooks are called for it, and none is called again after another one changed the Pod"})
}

// generated checks that a webhook that mutates Pods does not mutate the objects that controllers make for them.
func (c *checker) generated(h *webhook) {
	for _, resource := range []string{"apps/replicasets", "batch/jobs", "apps/controllerrevisions"} {
		p := newProbe(c.world, about{operation: "CREATE", resource: resource, namespace: ordinary, name: "app-1", user: "deployment-controller", object: workloadSpec(nil)})
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
	for _, o := range slices.Concat(c.byKind[validatingConfigurations], c.byKind[mutatingConfigurations]) {
		switch name := o.GetName(); {
		case !c.judged(o):
		case strings.HasSuffix(name, ".static.k8s.io"):
			c.add(o, "metadata.name", Finding{Severity: Error, Message: "names with .static.k8s.io at the end are for configurations in files of the API server"})
		case name == "validating-webhook-configuration" || name == "mutating-webhook-configuration":
			c.add(o, "metadata.name", Finding{Severity: Note, Message: "the name is the one that code generators write: another project with the same name overwrites the configuration"})
		}
	}
}

func checkOpen(c *checker, h *webhook) {
	switch {
	case h.mutates && h.fails:
		c.webhook(h, "failurePolicy", Finding{Severity: Note, Request: "every request that the webhook matches", Message: "while the webhook does not answer, requests are refused: a mutating webhook can fail open if a validating one checks the final object"})
	case !h.mutates && !h.fails && !c.checkedElsewhere(h):
		c.webhook(h, "failurePolicy", Finding{Severity: Note, Request: "every request that the webhook matches", Message: "while the webhook does not answer, nothing is checked; a denial still counts"})
	}
}

// checkedElsewhere reports whether another webhook that fails closed has the same rules.
func (c *checker) checkedElsewhere(h *webhook) bool {
	return slices.ContainsFunc(c.webhooks, func(other *webhook) bool {
		return !other.mutates && other.fails && len(h.Rules) > 0 && !slices.ContainsFunc(h.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return !slices.ContainsFunc(other.Rules, func(o admissionregistrationv1.RuleWithOperations) bool {
				return slices.Equal(r.APIGroups, o.APIGroups) && slices.Equal(r.Resources, o.Resources)
			})
		})
	})
}

func checkServedVersion(c *checker) {
	for _, o := range slices.Concat(c.byKind[validatingConfigurations], c.byKind[mutatingConfigurations]) {
		if version := o.GroupVersionKind().Version; version != "v1" && c.judged(o) {
			c.add(o, "apiVersion", Finding{Severity: Error, Message: fmt.Sprintf("API servers do not serve %s of %s", version, o.GetKind())})
		}
	}
}
