package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

// matchRules returns the rules about what a webhook matches.
func matchRules() []Rule {
	return []Rule{
		{
			ID: "CF-MATCH-1", Name: "no-version-escapes", Level: framework.Must,
			Title:  "A webhook sees a resource in every version that is served.",
			Why:    "With matchPolicy Exact, a client that uses another version of the resource avoids the webhook.",
			When:   "matchPolicy is Exact, and a version that is served is in no rule of the webhook, or of another webhook of the same backend; a warning for a mutating webhook",
			Fix:    "leave out matchPolicy, so that it is Equivalent, or add the version to apiVersions",
			Source: []string{typesSource, issue("elastic/cloud-on-k8s/pull/4271"), goodPractices},
			Check:  each(checkVersions),
		},
		{
			ID: "CF-MATCH-2", Name: "one-call", Level: framework.Should,
			Title:  "A request leads to one call of a backend.",
			Why:    "The backend gets the same request twice, once as a version that was converted, and can change or refuse it twice.",
			When:   "two webhooks of one backend have rules for different versions of one resource, and matchPolicy Equivalent; or two configurations have the same webhook with the same selectors",
			Fix:    "use one webhook with the storage version, or matchPolicy Exact for one webhook for each version; delete the configuration of an earlier installation",
			Source: []string{issue("elastic/cloud-on-k8s/issues/4270"), issue("elastic/cloud-on-k8s/issues/5423"), issue("istio/istio/issues/36114")},
			Check:  checkTwice,
		},
		{
			ID: "CF-MATCH-3", Name: "no-dead-rule", Level: framework.Must,
			Title:  "Each rule can match a request.",
			Why:    "The webhook is not called for what its author had in mind.",
			When:   "a kind, singular or short name in resources; a subresource in the group of its own kind; exec, attach, portforward or proxy without CONNECT; scale, status, ephemeralcontainers or resize without UPDATE, or eviction, binding or token without CREATE; a scope that the resource does not have; * within a group; only resources that Kubernetes exempts; no rules. A resource that the API server does not serve is a note",
			Fix:    "write resources as in the URL, in lower case and in the plural, with the group and the operations that they have",
			Source: []string{issue("kubernetes/kubernetes/issues/113594"), issue("kubernetes/kubernetes/issues/115523"), issue("kyverno/kyverno/pull/9855"), issue("kyverno/kyverno/pull/2545")},
			Check:  each(checkDead),
		},
		{
			ID: "CF-MATCH-4", Name: "no-side-door", Level: framework.Should,
			Title:  "A validating webhook for Pods also sees ephemeral containers.",
			Why:    "An ephemeral container is added by an update of a subresource, after the Pod was admitted: what the webhook forbids can be added later.",
			When:   "a validating webhook with failurePolicy Fail is called for the creation of Pods, but not for the update of pods/ephemeralcontainers; a note for an update of a workload without its scale",
			Fix:    "add pods/ephemeralcontainers with UPDATE, and scale with UPDATE if the webhook looks at replicas",
			Source: []string{issue("deckhouse/deckhouse/pull/22398"), issue("IBM/portieris/issues/508"), issue("open-policy-agent/gatekeeper/issues/1837"), issue("kubernetes/kubernetes/issues/84530")},
			Check:  checkSideDoors,
		},
		{
			ID: "CF-MATCH-7", Name: "match-conditions-hold", Level: framework.Must,
			Title:  "Match conditions compile, and can be evaluated for every operation of the rules.",
			Why:    "With failurePolicy Fail, an error in a match condition refuses the request; with Ignore, the webhook is not called.",
			When:   "a condition does not compile; more than 64, or the same name twice; an error for a request in which object is null (DELETE), oldObject is null (CREATE), or the object has no labels or annotations; always true or false",
			Fix:    "test with object != null and has(object.metadata.labels) before you use them",
			Source: []string{issue("ovn-kubernetes/ovn-kubernetes/pull/6053"), issue("kubernetes/kubernetes/pull/116261"), "https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/apis/cel/config.go"},
			Check:  checkConditions,
		},
	}
}

func checkVersions(c *checker, h *webhook) {
	if !h.exact() {
		return
	}
	for i, rule := range h.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !hasWildcard(group + resource) {
					c.versions(h, i, group, resource)
				}
			}
		}
	}
}

// versions checks that a webhook with matchPolicy Exact has every version of a resource.
func (c *checker) versions(h *webhook, index int, group, resource string) {
	known := c.Find(group, resource)
	if len(known) == 0 {
		if !c.complete && !kinds.IsBuiltInGroup(group) {
			c.inconclusive(h.configuration, fmt.Sprintf("matchPolicy is Exact, and the versions of %s.%s are not known: its CustomResourceDefinition is not in the files", resource, group))
		}
		return
	}
	var missing []string
	for _, served := range known {
		covered := slices.ContainsFunc(c.webhooks, func(other *webhook) bool {
			return other.mutates == h.mutates && other.address() == h.address() && slices.ContainsFunc(other.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
				return containsOrAll(r.APIGroups, group) && containsOrAll(r.APIVersions, served.Version) && (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*") && !strings.Contains(resource, "/") || slices.Contains(r.Resources, "*/*"))
			})
		})
		if !covered {
			missing = append(missing, served.Version)
		}
	}
	if len(missing) == 0 {
		return
	}
	severity := Error
	if h.mutates {
		severity = Warning
	}
	c.webhook(h, fmt.Sprintf("rules[%d].apiVersions", index), Finding{
		Severity: severity, Request: fmt.Sprintf("%s %s in version %s", operations(h.Rules[index])[0], resource, missing[0]), Patch: []Operation{{"replace", h.pointer("matchPolicy"), "Equivalent"}},
		Message: fmt.Sprintf("matchPolicy is Exact: the webhook is not called for %s in version %s, which is served too", resource, strings.Join(missing, ", ")),
	})
}

func containsOrAll(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

func checkTwice(c *checker) {
	type group struct {
		mutates bool
		address string
	}
	groups := map[group][]*webhook{}
	for _, h := range c.webhooks {
		of := group{h.mutates, h.address()}
		for _, other := range groups[of] {
			if h.address() != "" && (c.judged(h.configuration) || c.judged(other.configuration)) && (c.sameWebhook(other, h) || c.convertedCall(other, h)) {
				break // one finding is enough
			}
		}
		groups[of] = append(groups[of], h)
	}
}

// sameWebhook checks that two configurations do not have the same webhook. It reports whether there is a finding.
func (c *checker) sameWebhook(h, other *webhook) bool {
	if h.configuration == other.configuration || h.Name != other.Name {
		return false
	}
	path := func(h *webhook) string {
		if h.ClientConfig.Service != nil {
			return ptr.Deref(h.ClientConfig.Service.Path, "/")
		}
		return ""
	}
	same := path(h) == path(other) && equality.Semantic.DeepEqual(h.NamespaceSelector, other.NamespaceSelector) &&
		equality.Semantic.DeepEqual(h.ObjectSelector, other.ObjectSelector) && equality.Semantic.DeepEqual(h.Rules, other.Rules)
	if same {
		c.webhook(h, "name", Finding{Severity: Warning, Request: "every request that the webhook matches", Message: fmt.Sprintf("%s has the same webhook, with the same rules and selectors: each request leads to two calls", other.configuration)})
	}
	return same
}

// convertedCall checks that two webhooks are not both called for one request because their rules have two versions of a
// resource. It reports whether there is a finding.
func (c *checker) convertedCall(h, other *webhook) bool {
	if h.exact() || other.exact() {
		return false
	}
	for i, rule := range h.Rules {
		for _, second := range other.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if hasWildcard(group+resource) || !slices.Contains(second.APIGroups, group) || !slices.Contains(second.Resources, resource) || slices.ContainsFunc(rule.APIVersions, func(v string) bool { return containsOrAll(second.APIVersions, v) || v == "*" }) {
						continue
					}
					known := c.version(group, resource, rule.APIVersions[0])
					at := slices.IndexFunc(operations(rule), func(o string) bool { return slices.Contains(operations(second), o) })
					if known == nil || at < 0 || c.version(group, resource, second.APIVersions[0]) == nil {
						continue
					}
					a := about{operation: operations(rule)[at], resource: group + "/" + resource, version: rule.APIVersions[0], name: "example-1"}
					if known.Namespaced {
						a.namespace = ordinary
					}
					p := newProbe(c.world, a)
					if c.reaches(h, p).called && c.reaches(other, p).called {
						c.webhook(h, fmt.Sprintf("rules[%d].apiVersions", i), Finding{
							Severity: Warning, Request: p.text,
							Message: fmt.Sprintf("webhook %s of %s is called for the same request, with the object converted to %s: both have matchPolicy Equivalent", other.Name, other.configuration, second.APIVersions[0]),
						})
						return true
					}
				}
			}
		}
	}
	return false
}

func checkSideDoors(c *checker) {
	covers := map[string]bool{} // by the kind and backend of a webhook, and the request
	covered := func(h *webhook, p probe) bool {
		key := fmt.Sprint(h.mutates, h.address(), p.key)
		known, ok := covers[key]
		if !ok {
			known = c.covered(h, p)
			covers[key] = known
		}
		return known
	}
	pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller", object: podSpec()})
	ephemeral := newProbe(c.world, about{operation: "UPDATE", resource: "pods/ephemeralcontainers", namespace: ordinary, name: "pod-1", object: podSpec()})
	for _, h := range c.chosen() {
		if h.mutates || !h.fails {
			continue
		}
		if c.reaches(h, pod).called && !covered(h, ephemeral) {
			c.webhook(h, "rules", Finding{Severity: Warning, Request: ephemeral.text, Message: "the webhook sees each new Pod, but no container that is added to it later"})
		}
		for _, resource := range []string{"deployments", "replicasets", "statefulsets"} {
			workload := newProbe(c.world, about{operation: "UPDATE", resource: "apps/" + resource, namespace: ordinary, name: "app-1", object: workloadSpec(nil)})
			scale := newProbe(c.world, about{operation: "UPDATE", resource: "apps/" + resource + "/scale", namespace: ordinary, name: "app-1", object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}})
			if c.reaches(h, workload).called && !covered(h, scale) {
				c.webhook(h, "rules", Finding{Severity: Note, Request: scale.text, Message: "the webhook sees updates of " + resource + ", but not a change of replicas through their scale"})
				break
			}
		}
	}
}

// covered reports whether a webhook, or another one of its backend, may be called for a request.
func (c *checker) covered(h *webhook, p probe) bool {
	return slices.ContainsFunc(c.webhooks, func(other *webhook) bool {
		return other.mutates == h.mutates && other.address() == h.address() && c.reaches(other, p).possible()
	})
}

// maxConditions is the largest number of match conditions that the API allows.
const maxConditions = 64

func checkConditions(c *checker) {
	broken := map[string]bool{}
	for _, problem := range c.admission.ExpressionErrors() {
		for _, h := range c.chosen() {
			if problem.Webhook != "" && h.key() == problem.Kind+" "+problem.Name+" "+problem.Webhook {
				broken[h.key()] = true
				c.webhook(h, problem.Field, Finding{Severity: Error, Request: "every request that the webhook matches", Message: "the condition does not compile: " + firstLine(problem.Text)})
			}
		}
	}
	for _, h := range c.chosen() {
		if len(h.MatchConditions) > maxConditions {
			c.webhook(h, "matchConditions", Finding{Severity: Error, Message: fmt.Sprintf("there are %d conditions; an API server allows %d", len(h.MatchConditions), maxConditions)})
		}
		names := map[string]bool{}
		for i, condition := range h.MatchConditions {
			field := fmt.Sprintf("matchConditions[%d]", i)
			if names[condition.Name] {
				c.webhook(h, field+".name", Finding{Severity: Error, Message: fmt.Sprintf("two conditions have the name %q; the API server refuses the configuration", condition.Name)})
			}
			names[condition.Name] = true
			if text := strings.TrimSpace(condition.Expression); text == "true" || text == "false" {
				c.webhook(h, field+".expression", Finding{Severity: Warning, Request: "every request that the webhook matches", Message: "the condition is always " + text})
			}
		}
		if len(h.MatchConditions) > 0 && !broken[h.key()] {
			c.evaluates(h)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// evaluates checks that the conditions can be evaluated for each operation of the rules.
func (c *checker) evaluates(h *webhook) {
	alone, err := reach.New([]map[string]any{onlyConditions(h)})
	if err != nil {
		return // CF-MATCH-7 has a finding that a condition does not compile
	}
	for i, rule := range h.Rules {
		for _, operation := range operations(rule) {
			p, ok := c.probeFor(rule, operation)
			if !ok {
				continue
			}
			findings, err := alone.Effects(c.ctx, p.Request, c.world)
			if err != nil {
				c.inconclusive(h.configuration, "it is not known what the match conditions do for "+p.text+": "+err.Error())
			}
			for _, f := range findings {
				if f.Effect != reach.EffectRefused || !strings.Contains(f.Text, "match condition") || !missingByNature(f.Text, operation) {
					continue
				}
				_, cause, _ := strings.Cut(f.Text, "match condition: ")
				message := "a match condition cannot be evaluated for such a request: " + firstLine(cause)
				if h.fails {
					message += "; the request is refused (failurePolicy Fail)"
				} else {
					message += "; the webhook is not called (failurePolicy Ignore)"
				}
				c.webhook(h, "matchConditions", Finding{Severity: c.severity(h, ""), Request: fmt.Sprintf("%s (rules[%d])", p.text, i), Message: message})
				return
			}
		}
	}
}

// missingByNature reports whether an error is about something that requests of this operation, or objects without labels and
// annotations, never have. Other errors can be about fields that real objects have.
func missingByNature(text, operation string) bool {
	if strings.Contains(text, "no such overload") {
		return operation == "DELETE" || operation == "CREATE" || operation == "CONNECT"
	}
	return slices.ContainsFunc([]string{"no such key: labels", "no such key: annotations", "cost"}, func(part string) bool { return strings.Contains(text, part) })
}

// probeFor returns a request of an operation that a rule matches.
func (c *checker) probeFor(rule admissionregistrationv1.RuleWithOperations, operation string) (probe, bool) {
	if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.APIVersions) == 0 {
		return probe{}, false
	}
	a := about{operation: operation, resource: rule.Resources[0], version: rule.APIVersions[0], namespace: ordinary, name: "example-1"}
	group := rule.APIGroups[0]
	if hasWildcard(a.resource) {
		a.resource, group, a.version = "configmaps", "", "v1"
		if !slices.Contains(rule.APIGroups, "") && !slices.Contains(rule.APIGroups, "*") {
			return probe{}, false
		}
	}
	if group == "*" {
		groups := c.Groups(strings.Split(a.resource, "/")[0])
		if len(groups) == 0 {
			return probe{}, false
		}
		group = groups[0]
	}
	if known := c.Find(group, a.resource); len(known) > 0 {
		if !known[0].Namespaced {
			a.namespace = ""
		}
		if a.version == "*" {
			a.version = known[0].Version
		}
	}
	if a.version == "*" {
		a.version = "v1"
	}
	if _, sub, _ := strings.Cut(a.resource, "/"); !possible(sub, operation) {
		return probe{}, false
	}
	if group != "" {
		a.resource = group + "/" + a.resource
	}
	if rule.Resources[0] == "pods" {
		a.object = podSpec()
	}
	return newProbe(c.world, a), isGroup(group) || group == ""
}

// onlyConditions returns a configuration of one webhook, with failurePolicy Fail and without its selectors.
func onlyConditions(h *webhook) map[string]any {
	original, _ := h.configuration.list("webhooks")[h.index].(map[string]any)
	fields := map[string]any{"name": h.Name, "failurePolicy": "Fail", "rules": original["rules"], "matchConditions": original["matchConditions"]}
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": h.configuration.GetKind(), "metadata": map[string]any{"name": h.configuration.GetName()}, "webhooks": []any{fields},
	}
}
