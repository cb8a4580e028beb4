package doctor

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
)

const byName = "exclude the namespace by its name: namespaceSelector with kubernetes.io/metadata.name NotIn"

// blockRules returns the rules about what a webhook can stop.
func blockRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-1", Name: "own-backend-can-start", Level: framework.Must,
			Title: "A failing webhook cannot keep its own backend from coming back.",
			Why:   "The API server asks the webhook about its own Pods. If no Pod of it runs, none can be created: only an administrator who deletes the configuration can help.",
			When:  "the webhook has a Service and is called for the creation of a Pod behind it, for its ReplicaSet or Deployment, or for the bindings, Leases, EndpointSlices or Secrets of its namespace",
			Fix:   byName + " [the namespace of the webhook]",
			Source: []string{
				goodPractices, issue("topolvm/topolvm/issues/57"), issue("confidential-containers/cloud-api-adaptor/issues/305"), issue("kyverno/kyverno/issues/16177"),
			},
			Check: each(checkOwnBackend),
		},
		{
			ID: "CF-BLOCK-2", Name: "cluster-can-start", Level: framework.Must,
			Title:  "A failing webhook does not stop what the cluster needs to start.",
			Why:    "While the webhook does not answer, nodes cannot join, system Pods are not replaced, and often the webhook itself cannot come back.",
			When:   "the webhook is called for a request of the system set: workloads and their parts in kube-system, Leases, Nodes, certificate requests, RBAC, CustomResourceDefinitions, APIServices, priority classes, and Pods of DaemonSets that each node needs",
			Fix:    byName + " [kube-system, kube-node-lease], and name the resources that the webhook needs",
			Source: []string{goodPractices, issue("cozystack/cozystack/issues/3125"), issue("projectcapsule/capsule/issues/2036"), "https://github.com/gardener/gardener/blob/b312835d1784c3628983205c05452b2eaa95b645/pkg/gardenlet/operation/botanist/matchers/matcher.go"},
			Check:  checkSystemSet,
		},
		{
			ID: "CF-BLOCK-3", Name: "leases-do-not-wait", Level: framework.Must,
			Title:  "Leader election and the heartbeats of nodes do not wait for a webhook.",
			Why:    "A Lease that is renewed too late is lost: controllers restart, and nodes become NotReady. A webhook with failurePolicy Ignore delays each renewal too.",
			When:   "the webhook is called for the creation or update of Leases in kube-system or kube-node-lease, and the timeout is more than 3 s",
			Fix:    byName + " [kube-system, kube-node-lease], or set timeoutSeconds to at most 3",
			Source: []string{issue("kubernetes/kubernetes/issues/90217"), issue("open-policy-agent/gatekeeper/issues/870"), issue("kubernetes/kubernetes/issues/107678")},
			Check:  each(checkLeases),
		},
		{
			ID: "CF-BLOCK-4", Name: "no-cycle", Level: framework.Must,
			Title:  "Webhooks do not need each other to create their Pods.",
			Why:    "If all Pods of a cycle are gone, none of them can be created: each waits for another one.",
			When:   "a webhook is called for the creation of the Pods of another one, which is called, directly or through others, for the creation of the Pods of the first",
			Fix:    "exclude the namespaces of the other webhooks in at least one of them",
			Source: []string{issue("defenseunicorns/uds-core/pull/1509"), issue("defenseunicorns/uds-core/issues/1795"), issue("kubernetes/website/pull/46798"), goodPractices},
			Check:  checkCycles,
		},
	}
}

// scopeRules returns the rules about resources that a webhook should leave alone.
func scopeRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-7", Name: "not-on-everything", Level: framework.Should,
			Title:  "A webhook does not match every resource.",
			Why:    "Every write of every controller waits for it, also of kinds that did not exist when it was written. Events that a webhook causes can call it again, without end.",
			When:   "a rule has * in apiGroups and * or */* in resources, and no selector by which namespaces or objects opt in; or a webhook with side effects is called for the creation of Events",
			Fix:    "name the API groups and resources that the webhook needs",
			Source: []string{goodPractices, issue("kubernetes/kubernetes/issues/92157"), issue("gatekeeper/gatekeeper-operator/issues/200"), issue("kyverno/kyverno/issues/9056")},
			Check:  each(checkEverything),
		},
		{
			ID: "CF-BLOCK-8", Name: "no-reviews", Level: framework.Must,
			Title:  "Webhooks are not called for authentication and authorization reviews.",
			Why:    "Other API servers and controllers ask with these reviews who a user is and what the user may do. If a webhook stops them, requests to aggregated APIs, and often requests of the webhook itself, fail. API servers from 1.37 on never call webhooks for them.",
			When:   "the webhook is called for TokenReviews, SelfSubjectReviews, SubjectAccessReviews and their local, self and rules forms, on an API server before 1.37",
			Fix:    "name the API groups that the webhook needs, without authentication.k8s.io and authorization.k8s.io",
			Source: []string{issue("kubernetes/kubernetes/pull/140019"), issue("openshift/cluster-kube-apiserver-operator/pull/1249"), issue("kubernetes/kubernetes/issues/122205")},
			Check:  checkReviews,
		},
		{
			ID: "CF-BLOCK-9", Name: "pods-can-be-scheduled", Level: framework.Should,
			Title:  "Scheduling and draining do not depend on a webhook.",
			Why:    "While the webhook does not answer, no Pod of any namespace is scheduled, or no node can be drained.",
			When:   "a webhook with failurePolicy Fail is called for pods/binding or pods/eviction in namespaces that did not opt in",
			Fix:    "let namespaces opt in with a label in namespaceSelector, or use failurePolicy Ignore",
			Source: []string{issue("SlinkyProject/slurm-operator/issues/189"), issue("SlinkyProject/slurm-operator/pull/188"), issue("kubernetes-sigs/apiserver-network-proxy/issues/566")},
			Check:  checkScheduling,
		},
		{
			ID: "CF-BLOCK-11", Name: "can-be-uninstalled", Level: framework.Should,
			Title:  "The objects of a webhook can be deleted when the webhook is gone.",
			Why:    "When its namespace is deleted, the webhook can be gone before the other objects. Their deletion is refused then, and the namespace never ends.",
			When:   "a webhook with failurePolicy Fail is called for the deletion of objects in its own namespace, or of CustomResourceDefinitions",
			Fix:    byName + " [the namespace of the webhook], or leave DELETE out of operations",
			Source: []string{issue("opendatahub-io/opendatahub-operator/issues/3808"), issue("kyverno/kyverno/issues/3111"), issue("open-policy-agent/gatekeeper/issues/747")},
			Check:  each(checkUninstall),
		},
	}
}

func checkOwnBackend(c *checker, h *webhook) {
	if h.backend == nil {
		return
	}
	all := c.reachedOf(h, c.ownRequests(h.backend))
	c.requests(h, selectorField(h), all, Finding{Message: fmt.Sprintf("a request that brings its own backend, Service %s, back %s", h.backend, waits(h)), Patch: excludePatch(h, h.backend.namespace)})
}

// selectorField returns the field to change if a webhook reaches too many namespaces.
func selectorField(h *webhook) string {
	if h.NamespaceSelector != nil {
		return "namespaceSelector"
	}
	return "rules"
}

// excludePatch returns a patch that excludes namespaces by name. It is empty if the webhook has matchExpressions already:
// the author has to decide.
func excludePatch(h *webhook, namespaces ...string) []Operation {
	expression := map[string]any{"key": nameLabel, "operator": "NotIn", "values": namespaces}
	switch {
	case h.NamespaceSelector == nil:
		return []Operation{{"add", h.pointer("namespaceSelector"), map[string]any{"matchExpressions": []any{expression}}}}
	case len(h.NamespaceSelector.MatchExpressions) == 0:
		return []Operation{{"add", h.pointer("namespaceSelector/matchExpressions"), []any{expression}}}
	default:
		return []Operation{{"add", h.pointer("namespaceSelector/matchExpressions/-"), expression}}
	}
}

func checkSystemSet(c *checker) {
	probes := c.systemRequests()
	for _, h := range c.chosen() {
		f := Finding{Message: "a request that the cluster needs " + waits(h)}
		all := c.reachedOf(h, slices.DeleteFunc(slices.Clone(probes), func(p probe) bool { return !h.fails && p.Resource.Resource == "leases" })) // CF-BLOCK-3
		if first, _ := all.requests(); len(first) > 0 && first[0].Namespace == kubeSystem {
			f.Patch = excludePatch(h, kubeSystem, nodeLeases)
		}
		c.requests(h, "rules", all, f)
	}
}

func checkLeases(c *checker, h *webhook) {
	if h.timeout <= 3 {
		return
	}
	all := c.reachedOf(h, c.leaseRequests())
	_, unknown := all.requests()
	f := Finding{
		Message: fmt.Sprintf("waits up to %d s for the webhook, whatever its failurePolicy; a lease that is not renewed in time is lost", h.timeout),
		Patch:   excludePatch(h, kubeSystem, nodeLeases),
	}
	if f.Severity = Error; unknown != "" {
		f.Severity = Warning
	}
	c.requests(h, "timeoutSeconds", all, f)
}

func checkEverything(c *checker, h *webhook) {
	optIn := slices.ContainsFunc(append(requirements(h.NamespaceSelector), requirements(h.ObjectSelector)...), optsIn)
	for i, rule := range h.Rules {
		if optIn || !slices.Contains(rule.APIGroups, "*") || !slices.Contains(rule.Resources, "*") && !slices.Contains(rule.Resources, "*/*") {
			continue
		}
		unknown := ""
		if len(h.MatchConditions) > 0 {
			unknown = "the matchConditions can leave out most requests"
		}
		severity := Warning
		if h.fails {
			severity = Error
		}
		if unknown != "" {
			severity = severity.lower(1)
		}
		c.webhook(h, fmt.Sprintf("rules[%d].resources", i), Finding{
			Severity: severity, Unknown: unknown, Request: operations(rule)[0] + " of every resource, present and future",
			Message: "the webhook is called for every resource of every API group: each such request " + waits(h),
		})
		break
	}
	writes := h.SideEffects != nil && *h.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
	if writes && !optIn && !c.found(h) {
		events := newProbe(c.world, about{operation: "CREATE", resource: "events", namespace: ordinary, name: "example.1", user: "deployment-controller"})
		c.requests(h, "rules", c.reachedOf(h, []probe{events}), Finding{Message: "the webhook has side effects and is called for Events: if an effect causes an Event, it is called without end"})
	}
}

// found reports whether this rule has a finding about a webhook.
func (c *checker) found(h *webhook) bool {
	return slices.ContainsFunc(c.report.Findings, func(f Finding) bool {
		return f.Rule == c.rule.ID && f.Object == h.configuration.String() && f.Webhook == h.Name
	})
}

func checkReviews(c *checker) {
	if c.minor >= 37 {
		c.undecided(framework.Unsupported, nil, "API servers do not call webhooks for reviews from 1.37 on")
		return
	}
	var probes []probe
	for _, resource := range []string{"authentication.k8s.io/tokenreviews", "authentication.k8s.io/selfsubjectreviews", "authorization.k8s.io/subjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews", "authorization.k8s.io/selfsubjectrulesreviews"} {
		probes = append(probes, newProbe(c.world, about{operation: "CREATE", resource: resource, name: "review", user: "kube-aggregator"}))
	}
	probes = append(probes, newProbe(c.world, about{operation: "CREATE", resource: "authorization.k8s.io/localsubjectaccessreviews", namespace: ordinary, name: "review", user: "kube-aggregator"}))
	for _, h := range c.chosen() {
		c.requests(h, "rules", c.reachedOf(h, probes), Finding{Message: "a review of a user or a right " + waits(h)})
	}
}

func checkScheduling(c *checker) {
	probes := []probe{
		newProbe(c.world, about{operation: "CREATE", resource: "pods/binding", namespace: ordinary, name: "pod-1", user: "system:kube-scheduler"}),
		newProbe(c.world, about{operation: "CREATE", resource: "pods/eviction", namespace: ordinary, name: "pod-1", user: "node-controller"}),
	}
	for _, h := range c.chosen() {
		if h.fails {
			c.requests(h, "rules", c.reachedOf(h, probes), Finding{Message: "a Pod of any namespace cannot be scheduled or evicted while the webhook does not answer"})
		}
	}
}

func checkUninstall(c *checker, h *webhook) {
	if !h.fails || h.backend == nil || !slices.ContainsFunc(h.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(operations(r), "DELETE")
	}) {
		return
	}
	var probes []probe
	remove := func(resource, namespace, name string) {
		probes = append(probes, newProbe(c.world, about{operation: "DELETE", resource: resource, namespace: namespace, name: name, user: "namespace-controller"}))
	}
	for _, resource := range []string{"pods", "configmaps", "secrets", "services", "serviceaccounts", "apps/deployments", "apps/replicasets", "coordination.k8s.io/leases"} {
		remove(resource, h.backend.namespace, h.backend.name)
	}
	for _, crd := range c.byKind[definitionKind] {
		if sameRelease(h.backend.service, crd) {
			remove("apiextensions.k8s.io/customresourcedefinitions", "", crd.GetName())
		}
	}
	c.requests(h, "rules", c.reachedOf(h, probes), Finding{Message: "the deletion is refused when the webhook is gone: its namespace or CustomResourceDefinitions cannot be removed", Patch: excludePatch(h, h.backend.namespace)})
}

// sameRelease reports whether two objects have the labels of the same release.
func sameRelease(service, crd *object) bool {
	if service == nil {
		return false
	}
	for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/part-of", "app.kubernetes.io/name"} {
		if value := service.GetLabels()[label]; value != "" && crd.GetLabels()[label] == value {
			return true
		}
	}
	return false
}

// replicasOf returns the replicas of a workload.
func replicasOf(o *object) int64 {
	if replicas, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas"); found && err == nil {
		return replicas
	}
	return 1
}
