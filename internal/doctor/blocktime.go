package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
)

// timeRules returns the rules about timeouts and replicas.
func timeRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-5", Name: "short-timeout", Level: framework.Should,
			Title:  "The timeout is short.",
			Why:    "Each request that the webhook matches waits that long when it does not answer. Clients, and the API server itself, give up after about 30 s.",
			When:   "timeoutSeconds is more than 10, an error from 30 on; not set, which means 10, is a note; and so is more than 5 for a webhook that mutates Pods",
			Fix:    "set timeoutSeconds to a few times what the webhook needs, at most 10",
			Source: []string{goodPractices, issue("digitalocean/clusterlint/blob/f8280ec625b978747868d6e21b43a68f602ffad3/checks/doks/admission_controller_webhook_timeout.go"), issue("gardener/gardener/issues/7013")},
			Check:  each(checkTimeout),
		},
		{
			ID: "CF-BLOCK-6", Name: "timeouts-add-up", Level: framework.Should,
			Title:  "The timeouts of all webhooks for one request fit into the request.",
			Why:    "Mutating webhooks are called one after the other. When several do not answer, the request ends before failurePolicy Ignore has an effect.",
			When:   "for one request, the sum of the timeouts of the mutating webhooks, twice for reinvocationPolicy IfNeeded, and the longest of the validating ones is more than 30 s",
			Fix:    "set shorter timeouts",
			Source: []string{issue("kubernetes/kubernetes/issues/128162"), issue("kubernetes/kubernetes/issues/71508")},
			Check:  checkSum,
		},
		{
			ID: "CF-BLOCK-10", Name: "two-replicas", Level: framework.Should,
			Title:  "A webhook with failurePolicy Fail runs on more than one node.",
			Why:    "While its only Pod moves to another node, each request that the webhook matches is refused.",
			When:   "fewer than two replicas or ready endpoints; all on one node; no PodDisruptionBudget, or one that allows no disruption. On a cluster with one node it is a note",
			Fix:    "run two replicas, with a PodDisruptionBudget of maxUnavailable 1, and spread them over nodes",
			Source: []string{goodPractices, issue("tektoncd/pipeline/issues/3386"), issue("tektoncd/pipeline/issues/3654"), issue("SAP-archive/karydia/issues/251")},
			Check:  checkReplicas,
		},
	}
}

func checkTimeout(c *checker, h *webhook) {
	switch {
	case h.timeout >= 30:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Error, Message: fmt.Sprintf("a request waits up to %d s, which leaves no time before the client and the API server give up", h.timeout), Patch: h.setTimeout(10)})
	case h.timeout > defaultTimeout:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Warning, Message: fmt.Sprintf("a request waits up to %d s when the webhook does not answer", h.timeout), Patch: h.setTimeout(10)})
	case h.TimeoutSeconds == nil:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Note, Message: "timeoutSeconds is not set: a request waits up to 10 s when the webhook does not answer", Patch: h.setTimeout(5)})
	case h.mutates && h.timeout > 5:
		pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller", object: podSpec()})
		if d := c.reaches(h, pod); d.called {
			c.webhook(h, "timeoutSeconds", Finding{Severity: Note, Request: pod.text, Message: fmt.Sprintf("the creation of each Pod waits up to %d s when the webhook does not answer", h.timeout), Patch: h.setTimeout(5)})
		}
	}
}

// setTimeout returns a patch of timeoutSeconds.
func (h *webhook) setTimeout(seconds int) []Operation {
	return []Operation{{"add", h.pointer("timeoutSeconds"), seconds}}
}

// longest is the time after which an API server ends the admission of a request
// (k8s.io/apiserver/pkg/endpoints/handlers/rest.go has 34 s).
const longest = 30

func checkSum(c *checker) {
	var reported [][]*webhook
	for _, p := range c.everyRequest() {
		decided := c.decide(p)
		if len(decided.webhooks) == 0 {
			continue
		}
		var contributors []*webhook
		var last *webhook // the slowest validating one
		sum := 0
		var lines []string
		for _, h := range c.webhooks {
			if !c.reaches(h, p).possible() {
				continue
			}
			if !h.mutates {
				if last == nil || h.timeout > last.timeout {
					last = h
				}
				continue
			}
			times, suffix := 1, ""
			if h.ReinvocationPolicy != nil && *h.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
				times, suffix = 2, ", twice"
			}
			contributors, sum = append(contributors, h), sum+times*int(h.timeout)
			lines = append(lines, fmt.Sprintf("%s of %s: %d s%s", h.Name, h.configuration, h.timeout, suffix))
		}
		if last != nil {
			contributors, sum = append(contributors, last), sum+int(last.timeout)
			lines = append(lines, fmt.Sprintf("%s of %s: %d s, the longest of the validating ones", last.Name, last.configuration, last.timeout))
		}
		covered := slices.ContainsFunc(reported, func(known []*webhook) bool {
			return !slices.ContainsFunc(contributors, func(h *webhook) bool { return !slices.Contains(known, h) })
		})
		mine := slices.IndexFunc(contributors, func(h *webhook) bool { return c.judged(h.configuration) })
		if sum <= longest || len(contributors) < 2 || covered || mine < 0 {
			continue
		}
		reported = append(reported, contributors)
		c.webhook(contributors[mine], "timeoutSeconds", Finding{
			Severity: Warning, Request: p.text, More: lines,
			Message: fmt.Sprintf("the webhooks for this request can take %d s together, more than the %d s that it has; it then fails although some have failurePolicy Ignore", sum, longest),
		})
	}
}

// everyRequest returns the creation and the update of objects of common kinds in a namespace without labels, and of the
// kinds that rules name.
func (w *world) everyRequest() []probe {
	var all []probe
	seen := map[string]bool{}
	add := func(group, version, resource string, namespaced bool) {
		for _, operation := range []string{"CREATE", "UPDATE"} {
			a := about{operation: operation, resource: resource, version: version, name: "example-1", namespace: ordinary}
			if group != "" {
				a.resource = group + "/" + resource
			}
			if resource == "pods" {
				a.object, a.user = podSpec(), "replicaset-controller"
			}
			if !namespaced {
				a.namespace = ""
			}
			if p := newProbe(w, a); !seen[p.key] && p.Resource.Resource == resource {
				seen[p.key] = true
				all = append(all, p)
			}
		}
	}
	add("", "v1", "pods", true)
	for _, resource := range []string{"configmaps", "secrets", "services", "serviceaccounts"} {
		add("", "v1", resource, true)
	}
	for _, resource := range []string{"deployments", "statefulsets", "daemonsets"} {
		add("apps", "v1", resource, true)
	}
	add("batch", "v1", "jobs", true)
	for _, h := range w.webhooks {
		for _, rule := range h.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, version := range rule.APIVersions {
						known := w.version(group, resource, version)
						if known != nil && !hasWildcard(group+resource+version) && !strings.Contains(resource, "/") && (group == "" || isGroup(group)) {
							add(group, version, resource, known.Namespaced)
						}
					}
				}
			}
		}
	}
	return all
}

func checkReplicas(c *checker) {
	done := map[*backend]*webhook{}
	for _, h := range c.chosen() {
		if h.backend == nil || !h.fails || done[h.backend] != nil {
			continue
		}
		done[h.backend] = h
		b := h.backend
		switch {
		case b.service == nil && b.unknown != "":
			c.inconclusive(h.configuration, b.unknown)
		case b.service == nil: // CF-REACH-1
		case len(b.workloads) > 0:
			c.replicas(h, b.workloads[0])
		case len(b.pods) > 0:
			c.budget(h, int64(len(b.pods)))
		case b.workloadsUnknown != "":
			c.inconclusive(h.configuration, "no workload whose Pods Service "+b.String()+" selects is known: "+b.workloadsUnknown)
		}
	}
}

// replicas checks the number of replicas of a workload, and of its ready Pods.
func (c *checker) replicas(h *webhook, workload *object) {
	replicas := replicasOf(workload)
	if workload.GetKind() == "DaemonSet" {
		return // one Pod for each node
	}
	scalers, _ := c.list("HorizontalPodAutoscaler.autoscaling", workload.GetNamespace())
	for _, scaler := range scalers {
		if scaler.text("spec", "scaleTargetRef", "name") == workload.GetName() && scaler.text("spec", "scaleTargetRef", "kind") == workload.GetKind() {
			replicas, _, _ = unstructured.NestedInt64(scaler.Object, "spec", "minReplicas")
		}
	}
	severity := c.oneNode(Warning)
	if replicas < 2 {
		c.webhook(h, "clientConfig.service", Finding{Severity: severity, Request: "every request that the webhook matches", Message: fmt.Sprintf("%s, which serves it, has %d replica(s): requests are refused while its Pod moves", workload, replicas)})
		return
	}
	c.budget(h, replicas)
}

// selectsPods reports whether a PodDisruptionBudget selects Pods with labels. One without a selector is of no Pods.
func selectsPods(budget *object, of map[string]string) bool {
	fields, _, _ := unstructured.NestedMap(budget.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil || len(fields) == 0 {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// oneNode returns a severity, or Note if the cluster has one node.
func (c *checker) oneNode(severity Severity) Severity {
	if nodes, unknown := c.list("Node", ""); unknown == "" && len(nodes) == 1 {
		return Note
	}
	return severity
}

// budget checks the nodes of the Pods and their PodDisruptionBudget.
func (c *checker) budget(h *webhook, replicas int64) {
	b := h.backend
	nodes := map[string]bool{}
	for _, pod := range b.pods {
		nodes[pod.text("spec", "nodeName")] = true
	}
	severity := c.oneNode(Warning)
	if replicas < 2 || len(nodes) == 1 && len(b.pods) > 1 {
		c.webhook(h, "clientConfig.service", Finding{Severity: severity, Request: "every request that the webhook matches", Message: fmt.Sprintf("all Pods of Service %s run on one node, or there is only one: requests are refused while it is drained", b)})
		return
	}
	budgets, unknown := c.list("PodDisruptionBudget.policy", b.namespace)
	for _, budget := range budgets {
		if !selectsPods(budget, b.labels) {
			continue
		}
		allowed, found, _ := unstructured.NestedInt64(budget.Object, "status", "disruptionsAllowed")
		healthy, _, _ := unstructured.NestedInt64(budget.Object, "status", "currentHealthy")
		if found && allowed == 0 && healthy >= replicas {
			c.webhook(h, "clientConfig.service", Finding{Severity: severity, Message: fmt.Sprintf("PodDisruptionBudget %s allows no disruption: nodes with its Pods cannot be drained", budget.GetName())})
		}
		return
	}
	if unknown != "" && c.onCluster {
		c.inconclusive(h.configuration, unknown)
		return
	}
	c.webhook(h, "clientConfig.service", Finding{Severity: severity.lower(1), Request: "every request that the webhook matches", Message: fmt.Sprintf("no PodDisruptionBudget selects the Pods of Service %s: a drain can stop all of them at once", b)})
}
