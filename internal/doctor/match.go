package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

// matchRules returns the rules about what a webhook matches.
func matchRules() []Rule {
	return []Rule{
		{
			ID: "CF-MATCH-1", Name: "no-version-escapes", Level: framework.Must,
			Fix:    "leave out matchPolicy, so that it is Equivalent, or add the version to apiVersions",
			Source: []string{typesSource, issue("elastic/cloud-on-k8s/pull/4271"), goodPractices},
			Check:  each(checkVersions),
		},
		{
			ID: "CF-MATCH-2", Name: "one-call", Level: framework.Should,
			Fix:    "use one webhook with the storage version, or matchPolicy Exact for one webhook for each version; delete the configuration of an earlier installation",
			Source: []string{issue("elastic/cloud-on-k8s/issues/4270"), issue("elastic/cloud-on-k8s/issues/5423"), issue("istio/istio/issues/36114")},
			Check:  checkTwice,
		},
		{
			ID: "CF-MATCH-3", Name: "no-dead-rule", Level: framework.Must,
			Fix:    "write resources as in the URL, in lower case and in the plural, with the group and the operations that they have",
			Source: []string{issue("kubernetes/kubernetes/issues/113594"), issue("kubernetes/kubernetes/issues/115523"), issue("kyverno/kyverno/pull/9855"), issue("kyverno/kyverno/pull/2545")},
			Check:  each(checkDead),
		},
		{
			ID: "CF-MATCH-4", Name: "no-side-door", Level: framework.Should,
			Fix:    "add pods/ephemeralcontainers with UPDATE",
			Source: []string{issue("deckhouse/deckhouse/pull/22398"), issue("IBM/portieris/issues/508"), issue("open-policy-agent/gatekeeper/issues/1837"), issue("kubernetes/kubernetes/issues/84530")},
			Check:  checkSideDoors,
		},
		{
			ID: "CF-MATCH-7", Name: "match-conditions-hold", Level: framework.Must,
			Fix:    "test with object != null and has(object.metadata.labels) before you use them",
			Source: []string{issue("ovn-kubernetes/ovn-kubernetes/pull/6053"), issue("kubernetes/kubernetes/pull/116261"), "https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/apis/cel/config.go"},
			Check:  checkConditions,
		},
		{
			ID: "CF-MATCH-5", Name: "object-selector", Level: framework.Should,
			Fix:    "use a matchCondition about the user instead, or for objects in namespaces, select these",
			Source: []string{typesSource, issue("open-policy-agent/gatekeeper/pull/2034"), issue("IBM/portieris/pull/144"), issue("kubernetes/kubernetes/issues/110169")},
			Check:  each(checkObjectSelectors),
		},
		{
			ID: "CF-MATCH-6", Name: "namespace-selector", Level: framework.Should,
			Fix:    "select by kubernetes.io/metadata.name",
			Source: []string{issue("open-policy-agent/gatekeeper/issues/231"), issue("kubernetes/kubernetes/issues/72310"), issue("open-policy-agent/gatekeeper/pull/623"), typesSource},
			Check:  each(checkNamespaceSelectors),
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
			return sameBackend(h, other) && slices.ContainsFunc(other.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
				return containsOrAll(r.APIGroups, group) && containsOrAll(r.APIVersions, served.Version) && (containsOrAll(r.Resources, resource) || slices.Contains(r.Resources, "*/*"))
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
	var patch []Operation
	if !slices.ContainsFunc(c.webhooks, func(other *webhook) bool { return other != h && sameBackend(h, other) }) { // CF-MATCH-2
		patch = []Operation{{"replace", h.pointer("matchPolicy"), "Equivalent"}}
	}
	c.webhook(h, fmt.Sprintf("rules[%d].apiVersions", index), Finding{
		Severity: severity, Request: fmt.Sprintf("%s %s in version %s", operations(h.Rules[index])[0], resource, missing[0]), Patch: patch,
		Message: fmt.Sprintf("matchPolicy is Exact: the webhook is not called for %s in version %s, which is served too", resource, strings.Join(missing, ", ")),
	})
}

func sameBackend(h, other *webhook) bool {
	return other.mutates == h.mutates && other.address() == h.address()
}

func containsOrAll(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

func checkTwice(c *checker) {
	for i, h := range c.webhooks {
		for _, other := range c.webhooks[:i] {
			if !sameBackend(h, other) || h.address() == "" || !c.judged(h.configuration) && !c.judged(other.configuration) {
				continue
			}
			if c.sameWebhook(other, h) || c.convertedCall(other, h) {
				break // one finding is enough
			}
		}
	}
}

// sameWebhook checks that two configurations do not have the same webhook. It reports whether there is a finding.
func (c *checker) sameWebhook(h, other *webhook) bool {
	same := h.configuration != other.configuration && h.Name == other.Name && equality.Semantic.DeepEqual(h.ClientConfig.Service, other.ClientConfig.Service) && equality.Semantic.DeepEqual(h.NamespaceSelector, other.NamespaceSelector) &&
		equality.Semantic.DeepEqual(h.ObjectSelector, other.ObjectSelector) && equality.Semantic.DeepEqual(h.Rules, other.Rules)
	if same {
		c.webhook(h, "name", Finding{Severity: Warning, Request: everyRequest, Message: fmt.Sprintf("%s has the same webhook, with the same rules and selectors: each request leads to two calls", other.configuration)})
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
		for _, part := range parts(rule) {
			p, ok := c.probeFor(part, operations(rule)[0])
			version := convertedTo(other, rule, p)
			if ok && version != "" && !hasWildcard(part.Resources[0]) && c.reaches(h, p).called && c.reaches(other, p).called {
				c.webhook(h, fmt.Sprintf("rules[%d].apiVersions", i), Finding{
					Severity: Warning, Request: p.text,
					Message: fmt.Sprintf("webhook %s of %s is called for the same request, with the object converted to %s: both have matchPolicy Equivalent", other.Name, other.configuration, version),
				})
				return true
			}
		}
	}
	return false
}

// parts returns a rule for each group, version and resource of a rule.
func parts(rule admissionregistrationv1.RuleWithOperations) (all []admissionregistrationv1.RuleWithOperations) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, version := range rule.APIVersions {
				part := rule
				part.APIGroups, part.Resources, part.APIVersions = []string{group}, []string{resource}, []string{version}
				all = append(all, part)
			}
		}
	}
	return all
}

// convertedTo returns the version to which the object of a request of a rule is converted for a webhook, or "" if the webhook
// has the resource in a version of the rule, or not at all.
func convertedTo(h *webhook, of admissionregistrationv1.RuleWithOperations, p probe) (version string) {
	for _, rule := range h.Rules {
		switch {
		case !slices.Contains(rule.APIGroups, p.Resource.Group) || !slices.Contains(rule.Resources, p.Resource.Resource):
		case slices.ContainsFunc(of.APIVersions, func(v string) bool { return v == "*" || containsOrAll(rule.APIVersions, v) }):
			return ""
		case len(rule.APIVersions) > 0:
			version = rule.APIVersions[0]
		}
	}
	return version
}

func checkSideDoors(c *checker) {
	pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller"})
	ephemeral := newProbe(c.world, about{operation: "UPDATE", resource: "pods/ephemeralcontainers", namespace: ordinary, name: "pod-1"})
	for _, h := range c.chosen() {
		covered := slices.ContainsFunc(c.webhooks, func(other *webhook) bool { // the webhook, or another one of its backend
			return sameBackend(h, other) && c.reaches(other, ephemeral).possible()
		})
		if !h.mutates && h.fails && !covered && c.reaches(h, pod).called {
			c.webhook(h, "rules", Finding{Severity: Warning, Request: ephemeral.text, Message: "the webhook sees each new Pod, but no container that is added to it later"})
		}
	}
}

func checkConditions(c *checker) {
	for _, h := range c.chosen() {
		broken := false
		for _, problem := range c.broken {
			if problem.Webhook != "" && h.key() == problem.Kind+" "+problem.Name+" "+problem.Webhook {
				broken = true
				c.webhook(h, problem.Field, Finding{Severity: Error, Request: everyRequest, Message: "the condition does not compile: " + firstLine(problem.Text)})
			}
		}
		for i, condition := range h.MatchConditions {
			if text := strings.TrimSpace(condition.Expression); text == "true" || text == "false" {
				c.webhook(h, fmt.Sprintf("matchConditions[%d].expression", i), Finding{Severity: Warning, Request: everyRequest, Message: "the condition is always " + text})
			}
		}
		if len(h.MatchConditions) > 0 && !broken {
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
	name, subresource, _ := strings.Cut(rule.Resources[0], "/")
	group, version := rule.APIGroups[0], strings.TrimPrefix(rule.APIVersions[0], "*")
	if hasWildcard(rule.Resources[0]) {
		if !containsOrAll(rule.APIGroups, "") {
			return probe{}, false
		}
		name, subresource, group, version = "configmaps", "", "", "v1"
	}
	if groups := c.Groups(name); group == "*" && len(groups) > 0 {
		group = groups[0]
	}
	if group == "*" || !possible(subresource, operation) {
		return probe{}, false
	}
	a := about{operation: operation, namespace: ordinary, name: "example-1", resource: schema.GroupResource{Group: group, Resource: name}.String(), version: version}
	if subresource != "" {
		a.resource += "/" + subresource
	}
	if known := c.Find(group, name); len(known) > 0 {
		if !known[0].Namespaced {
			a.namespace = ""
		}
		a.version = cmp.Or(a.version, known[0].Version)
	}
	return newProbe(c.world, a), true
}

// onlyConditions returns a configuration of one webhook, with failurePolicy Fail and without its selectors.
func onlyConditions(h *webhook) map[string]any {
	original, _ := h.configuration.list("webhooks")[h.index].(map[string]any)
	fields := map[string]any{"name": h.Name, "failurePolicy": "Fail", "rules": original["rules"], "matchConditions": original["matchConditions"]}
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": h.configuration.GetKind(), "metadata": map[string]any{"name": h.configuration.GetName()}, "webhooks": []any{fields},
	}
}
