package doctor

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/framework"
)

const byName = "exclude the namespace by its name: namespaceSelector with kubernetes.io/metadata.name NotIn"

// blockRules returns the rules about what a webhook can stop.
func blockRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-1", Name: "own-backend-can-start", Level: framework.Must,
			Fix: byName + " [the namespace of the webhook]",
			Source: []string{
				goodPractices, issue("topolvm/topolvm/issues/57"), issue("confidential-containers/cloud-api-adaptor/issues/305"), issue("kyverno/kyverno/issues/16177"),
			},
			Check: each(checkOwnBackend),
		},
		{
			ID: "CF-BLOCK-2", Name: "cluster-can-start", Level: framework.Must,
			Fix:    byName + " [kube-system, kube-node-lease]; leave out requests without a namespace with a matchCondition, or name fewer resources",
			Source: []string{goodPractices, issue("cozystack/cozystack/issues/3125"), issue("projectcapsule/capsule/issues/2036"), "https://github.com/gardener/gardener/blob/b312835d1784c3628983205c05452b2eaa95b645/pkg/gardenlet/operation/botanist/matchers/matcher.go"},
			Check:  checkSystemSet,
		},
		{
			ID: "CF-BLOCK-3", Name: "leases-do-not-wait", Level: framework.Must,
			Fix:    byName + " [kube-system, kube-node-lease], or set timeoutSeconds to at most 3",
			Source: []string{issue("kubernetes/kubernetes/issues/90217"), issue("open-policy-agent/gatekeeper/issues/870"), issue("kubernetes/kubernetes/issues/107678")},
			Check:  each(checkLeases),
		},
		{
			ID: "CF-BLOCK-4", Name: "no-cycle", Level: framework.Must,
			Fix:    "exclude the namespaces of the other webhooks in at least one of them",
			Source: []string{issue("defenseunicorns/uds-core/pull/1509"), issue("defenseunicorns/uds-core/issues/1795"), issue("kubernetes/website/pull/46798"), goodPractices},
			Check:  checkCycles,
		},
	}
}

// scopeRules returns the rules about resources that a webhook should leave alone, and about timeouts and replicas.
func scopeRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-7", Name: "not-on-everything", Level: framework.Should,
			Fix:    "name the API groups and resources that the webhook needs",
			Source: []string{goodPractices, issue("kubernetes/kubernetes/issues/92157"), issue("gatekeeper/gatekeeper-operator/issues/200"), issue("kyverno/kyverno/issues/9056")},
			Check:  each(checkEverything),
		},
		{
			ID: "CF-BLOCK-8", Name: "no-reviews", Level: framework.Must,
			Fix:    "name the API groups that the webhook needs, without authentication.k8s.io and authorization.k8s.io",
			Source: []string{issue("kubernetes/kubernetes/pull/140019"), issue("openshift/cluster-kube-apiserver-operator/pull/1249"), issue("kubernetes/kubernetes/issues/122205")},
			Check:  checkReviews,
		},
		{
			ID: "CF-BLOCK-9", Name: "pods-can-be-scheduled", Level: framework.Should,
			Fix:    "let namespaces opt in with a label in namespaceSelector, or use failurePolicy Ignore",
			Source: []string{issue("SlinkyProject/slurm-operator/issues/189"), issue("SlinkyProject/slurm-operator/pull/188"), issue("kubernetes-sigs/apiserver-network-proxy/issues/566")},
			Check:  checkScheduling,
		},
		{
			ID: "CF-BLOCK-11", Name: "can-be-uninstalled", Level: framework.Should,
			Fix:    byName + " [the namespace of the webhook], or leave DELETE out of operations",
			Source: []string{issue("opendatahub-io/opendatahub-operator/issues/3808"), issue("kyverno/kyverno/issues/3111"), issue("open-policy-agent/gatekeeper/issues/747")},
			Check:  each(checkUninstall),
		},
		{
			ID: "CF-BLOCK-5", Name: "short-timeout", Level: framework.Should,
			Fix:    "set timeoutSeconds to a few times what the webhook needs, at most 10",
			Source: []string{goodPractices, issue("digitalocean/clusterlint/blob/f8280ec625b978747868d6e21b43a68f602ffad3/checks/doks/admission_controller_webhook_timeout.go"), issue("gardener/gardener/issues/7013")},
			Check:  each(checkTimeout),
		},
		{
			ID: "CF-BLOCK-6", Name: "timeouts-add-up", Level: framework.Should,
			Fix:    "set shorter timeouts",
			Source: []string{issue("kubernetes/kubernetes/issues/128162"), issue("kubernetes/kubernetes/issues/71508")},
			Check:  checkSum,
		},
		{
			ID: "CF-BLOCK-10", Name: "two-replicas", Level: framework.Should,
			Fix:    "run two replicas, with a PodDisruptionBudget of maxUnavailable 1, and spread them over nodes",
			Source: []string{goodPractices, issue("tektoncd/pipeline/issues/3386"), issue("tektoncd/pipeline/issues/3654"), issue("SAP-archive/karydia/issues/251")},
			Check:  checkReplicas,
		},
	}
}

func checkOwnBackend(c *checker, h *webhook) {
	if h.backend == nil {
		return
	}
	c.requests(h, selectorField(h), c.ownRequests(h.backend), Finding{Message: fmt.Sprintf("a request that brings its own backend, Service %s, back %s", h.backend, waits(h))})
}

// selectorField returns the field to change if a webhook reaches too many namespaces.
func selectorField(h *webhook) string {
	if h.NamespaceSelector != nil {
		return "namespaceSelector"
	}
	return "rules"
}

func checkSystemSet(c *checker) {
	probes := c.systemRequests()
	every := newProbe(c.world, about{operation: "CREATE", resource: "namespaces", name: ordinary})
	for _, h := range c.chosen() {
		mine := slices.DeleteFunc(slices.Clone(probes), func(p probe) bool { return !h.fails && p.Resource.Resource == "leases" }) // CF-BLOCK-3
		system := slices.IndexFunc(mine, func(p probe) bool { return p.Resource.Resource == "namespaces" })
		if c.reaches(h, mine[system]).called { // then, the creation of every namespace is worse
			mine = slices.Insert(mine, system, every)
		}
		c.requests(h, "rules", mine, Finding{Message: "a request that the cluster needs " + waits(h)})
	}
}

func checkLeases(c *checker, h *webhook) {
	if h.timeout <= 3 {
		return
	}
	severity := Error // whatever the failurePolicy
	if _, unknown := c.reached(h, c.leaseRequests()); unknown != "" {
		severity = Warning
	}
	c.requests(h, "timeoutSeconds", c.leaseRequests(), Finding{
		Severity: severity,
		Message:  fmt.Sprintf("waits up to %d s for the webhook, whatever its failurePolicy; a lease that is not renewed in time is lost", h.timeout),
	})
}

func checkEverything(c *checker, h *webhook) {
	optIn := slices.ContainsFunc(append(requirements(h.NamespaceSelector), requirements(h.ObjectSelector)...), optsIn)
	for i, rule := range h.Rules {
		if optIn || !slices.Contains(rule.APIGroups, "*") || !slices.Contains(rule.Resources, "*") && !slices.Contains(rule.Resources, "*/*") {
			continue
		}
		severity, unknown := Warning, ""
		if h.fails {
			severity = Error
		}
		if len(h.MatchConditions) > 0 {
			severity, unknown = severity.lower(1), "the matchConditions can leave out most requests"
		}
		c.webhook(h, fmt.Sprintf("rules[%d].resources", i), Finding{
			Severity: severity, Unknown: unknown, Request: operations(rule)[0] + " of every resource, present and future",
			Message: "the webhook is called for every resource of every API group: each such request " + waits(h),
		})
		return
	}
	if writes := h.SideEffects != nil && *h.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun; writes && !optIn {
		events := newProbe(c.world, about{operation: "CREATE", resource: "events", namespace: ordinary, name: "example.1", user: "deployment-controller"})
		c.requests(h, "rules", []probe{events}, Finding{Message: "the webhook has side effects and is called for Events: if an effect causes an Event, it is called without end"})
	}
}

func checkReviews(c *checker) {
	if c.minor >= 37 {
		c.undecided(framework.Unsupported, nil, "API servers do not call webhooks for reviews from 1.37 on")
		return
	}
	var probes []probe
	for _, resource := range []string{"tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io"} {
		probes = append(probes, newProbe(c.world, about{operation: "CREATE", resource: resource, name: "review", user: "kube-aggregator"}))
	}
	probes = append(probes, newProbe(c.world, about{operation: "CREATE", resource: "localsubjectaccessreviews.authorization.k8s.io", namespace: ordinary, name: "review", user: "kube-aggregator"}))
	for _, h := range c.chosen() {
		c.requests(h, "rules", probes, Finding{Message: "a review of a user or a right " + waits(h)})
	}
}

func checkScheduling(c *checker) {
	probes := []probe{
		newProbe(c.world, about{operation: "CREATE", resource: "pods/binding", namespace: ordinary, name: "pod-1", user: "system:kube-scheduler"}),
		newProbe(c.world, about{operation: "CREATE", resource: "pods/eviction", namespace: ordinary, name: "pod-1", user: "node-controller"}),
	}
	for _, h := range c.chosen() {
		if h.fails {
			c.requests(h, "rules", probes, Finding{Message: "a Pod of any namespace cannot be scheduled or evicted while the webhook does not answer"})
		}
	}
}

func checkUninstall(c *checker, h *webhook) {
	if !h.fails || h.backend == nil {
		return
	}
	c.ownDeletions(h)
	var probes []probe
	for _, resource := range []string{"pods", "configmaps", "secrets", "services", "serviceaccounts", "deployments.apps", "replicasets.apps", "leases.coordination.k8s.io"} {
		probes = append(probes, newProbe(c.world, about{operation: "DELETE", resource: resource, namespace: h.backend.namespace, name: h.backend.name, user: "namespace-controller"}))
	}
	c.requests(h, "rules", probes, Finding{Message: "the deletion is refused when the webhook is gone: its namespace or CustomResourceDefinitions cannot be removed"})
}
