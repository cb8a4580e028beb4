package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

func checkTimeout(c *checker, h *webhook) {
	switch {
	case h.timeout >= 30:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Error, Message: fmt.Sprintf("a request waits up to %d s, which leaves no time before the client and the API server give up", h.timeout), Patch: h.setTimeout(10)})
	case h.timeout > defaultTimeout:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Warning, Message: fmt.Sprintf("a request waits up to %d s when the webhook does not answer", h.timeout), Patch: h.setTimeout(10)})
	case h.TimeoutSeconds == nil:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Note, Message: "timeoutSeconds is not set: a request waits up to 10 s when the webhook does not answer", Patch: h.setTimeout(5)})
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
		called, lines, sum := c.slowest(p)
		covered := slices.ContainsFunc(reported, func(known []*webhook) bool {
			return !slices.ContainsFunc(called, func(h *webhook) bool { return !slices.Contains(known, h) })
		})
		mine := slices.IndexFunc(called, func(h *webhook) bool { return c.judged(h.configuration) })
		if sum <= longest || len(called) < 2 || covered || mine < 0 {
			continue
		}
		reported = append(reported, called)
		c.webhook(called[mine], "timeoutSeconds", Finding{
			Severity: Warning, Request: p.text, More: lines,
			Message: fmt.Sprintf("the webhooks for this request can take %d s together, more than the %d s that it has; it then fails although some have failurePolicy Ignore", sum, longest),
		})
	}
}

// slowest returns the mutating webhooks that may be called for a request, and the slowest validating one, with a line about each
// and the sum of their timeouts.
func (c *checker) slowest(p probe) (called []*webhook, lines []string, sum int32) {
	add := func(h *webhook, times int32, suffix string) {
		called, sum = append(called, h), sum+times*h.timeout
		lines = append(lines, fmt.Sprintf("%s of %s: %d s%s", h.Name, h.configuration, h.timeout, suffix))
	}
	var last *webhook
	for _, h := range c.webhooks { // the mutating ones are first
		switch again := ptr.Deref(h.ReinvocationPolicy, "") == admissionregistrationv1.IfNeededReinvocationPolicy; {
		case !c.reaches(h, p).possible():
		case h.mutates && again:
			add(h, 2, ", twice")
		case h.mutates:
			add(h, 1, "")
		case last == nil || h.timeout > last.timeout:
			last = h
		}
	}
	if last != nil {
		add(last, 1, ", the longest of the validating ones")
	}
	return called, lines, sum
}

// everyRequest returns the creation and the update of Pods, and of objects of the kinds that rules name, in a namespace without
// labels.
func (w *world) everyRequest() []probe {
	var all []probe
	seen := map[*kinds.Resource]bool{}
	add := func(group, version, resource string) {
		for _, known := range w.Find(group, resource) {
			if seen[known] || known.Version != version || strings.Contains(resource, "/") {
				continue
			}
			seen[known] = true
			a := about{resource: known.GroupResource().String(), version: known.Version, name: "example-1", namespace: ordinary}
			if known.Resource == "pods" {
				a.user = "replicaset-controller"
			}
			if !known.Namespaced {
				a.namespace = ""
			}
			for _, operation := range []string{"CREATE", "UPDATE"} {
				a.operation = operation
				all = append(all, newProbe(w, a))
			}
		}
	}
	add("", "v1", "pods")
	for _, h := range w.webhooks {
		for _, rule := range h.Rules {
			for _, part := range parts(rule) {
				add(part.APIGroups[0], part.APIVersions[0], part.Resources[0])
			}
		}
	}
	return all
}

func checkReplicas(c *checker) {
	done := map[*backend]bool{}
	for _, h := range c.chosen() {
		b := h.backend
		if b == nil || !h.fails || done[b] {
			continue
		}
		done[b] = true
		switch {
		case b.service == nil && b.unknown != "":
			c.inconclusive(h.configuration, b.unknown)
		case b.service == nil: // CF-REACH-1
		case len(b.workloads) > 0:
			c.replicas(h, b.workloads[0])
		case len(b.pods) > 0:
			c.budget(h, int32(len(b.pods))) //nolint:gosec // a namespace has fewer
		case !c.onCluster:
			c.inconclusive(h.configuration, "no workload is in the files whose Pods Service "+b.String()+" selects")
		}
	}
}

// replicas checks the number of replicas of a workload, and of its ready Pods.
func (c *checker) replicas(h *webhook, serves workload) {
	if serves.GetKind() == "DaemonSet" {
		return // one Pod for each node
	}
	replicas := serves.replicas()
	for _, o := range c.list("HorizontalPodAutoscaler.autoscaling", serves.GetNamespace()) {
		scaler := as[autoscalingv2.HorizontalPodAutoscaler](o).Spec
		if scaler.ScaleTargetRef.Name == serves.GetName() && scaler.ScaleTargetRef.Kind == serves.GetKind() {
			replicas = ptr.Deref(scaler.MinReplicas, 1)
		}
	}
	switch replicas {
	case 0: // CF-REACH-1
	case 1:
		c.webhook(h, "clientConfig.service", Finding{Severity: Warning, Request: everyRequest, Message: fmt.Sprintf("%s, which serves it, has %d replica(s): requests are refused while its Pod moves", serves, replicas)})
	default:
		c.budget(h, replicas)
	}
}

// budget checks the nodes of the Pods and their PodDisruptionBudget.
func (c *checker) budget(h *webhook, replicas int32) {
	b := h.backend
	nodes := map[string]bool{}
	for _, pod := range b.pods {
		nodes[as[corev1.Pod](pod).Spec.NodeName] = true
	}
	if replicas < 2 || len(nodes) == 1 && len(b.pods) > 1 {
		c.webhook(h, "clientConfig.service", Finding{Severity: Warning, Request: everyRequest, Message: fmt.Sprintf("all Pods of Service %s run on one node, or there is only one: requests are refused while it is drained", b)})
		return
	}
	for _, o := range c.list("PodDisruptionBudget.policy", b.namespace) {
		budget := as[policyv1.PodDisruptionBudget](o)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(b.labels)) {
			continue // one without a selector is of no Pods
		}
		if s := budget.Status; o.Object["status"] != nil && s.DisruptionsAllowed == 0 && s.CurrentHealthy >= replicas {
			c.webhook(h, "clientConfig.service", Finding{Severity: Warning, Message: fmt.Sprintf("PodDisruptionBudget %s allows no disruption: nodes with its Pods cannot be drained", o.GetName())})
		}
		return
	}
	c.webhook(h, "clientConfig.service", Finding{Severity: Note, Request: everyRequest, Message: fmt.Sprintf("no PodDisruptionBudget selects the Pods of Service %s: a drain can stop all of them at once", b)})
}
