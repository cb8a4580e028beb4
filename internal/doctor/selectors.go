package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// selectorRules returns the rules about selectors.
func selectorRules() []Rule {
	return []Rule{
		{
			ID: "CF-MATCH-5", Name: "object-selector", Level: framework.Should,
			Title:  "An objectSelector is no way out of a check, and can match.",
			Why:    "Whoever creates an object chooses its labels. Options of exec, attach, portforward and proxy, and Eviction, Binding and Scale objects, have no labels of their own.",
			When:   "a validating webhook exempts objects by a label, which is a warning; objects opt in by a label, which is a note; or objects must have a label, and a rule has a subresource whose objects have none",
			Fix:    "select namespaces instead, or use a matchCondition about the user",
			Source: []string{typesSource, issue("open-policy-agent/gatekeeper/pull/2034"), issue("IBM/portieris/pull/144"), issue("kubernetes/kubernetes/issues/110169")},
			Check:  each(checkObjectSelectors),
		},
		{
			ID: "CF-MATCH-6", Name: "namespace-selector", Level: framework.Should,
			Title:  "A namespaceSelector selects what it means to select.",
			Why:    "A selector that matches no namespace turns the webhook off. Whoever may edit a namespace can set any label except kubernetes.io/metadata.name. Objects without a namespace are always selected.",
			When:   "no namespace matches; a label exists on no namespace and looks like a misspelt one; a validating webhook exempts namespaces by a label other than kubernetes.io/metadata.name; a rule names only cluster-scoped resources, for which the selector has no effect",
			Fix:    "select by kubernetes.io/metadata.name, and leave the selector out where it has no effect",
			Source: []string{issue("open-policy-agent/gatekeeper/issues/231"), issue("kubernetes/kubernetes/issues/72310"), issue("open-policy-agent/gatekeeper/pull/623"), typesSource},
			Check:  checkNamespaceSelectors,
		},
	}
}

func checkObjectSelectors(c *checker, h *webhook) {
	all := requirements(h.ObjectSelector)
	if len(all) == 0 {
		return
	}
	in, out := slices.IndexFunc(all, optsIn), slices.IndexFunc(all, func(r metav1.LabelSelectorRequirement) bool { return !optsIn(r) })
	if in >= 0 {
		if resource, field := withoutLabels(h); resource != "" {
			c.webhook(h, field, Finding{Severity: Warning, Request: resource, Message: fmt.Sprintf("the object of such a request has no labels, and the objectSelector wants %q: the webhook is never called for it", all[in].Key)})
		}
	}
	switch {
	case h.mutates:
	case out >= 0:
		c.webhook(h, "objectSelector", Finding{Severity: c.severity(h, ""), Request: "a create of an object with the label " + all[out].Key, Message: "whoever creates an object can avoid the webhook by the label " + all[out].Key})
	case in >= 0:
		c.webhook(h, "objectSelector", Finding{Severity: Note, Request: "a create of an object without the label " + all[in].Key, Message: "objects opt in: an object without the label " + all[in].Key + " is not checked"})
	}
}

// withoutLabels returns a resource of a rule whose objects have no labels, and the field of the rule.
func withoutLabels(h *webhook) (resource, field string) {
	for i, rule := range h.Rules {
		for _, resource := range rule.Resources {
			_, subresource, _ := strings.Cut(resource, "/")
			if slices.Contains(append(connects(), "eviction", "binding", "scale"), subresource) {
				return resource, fmt.Sprintf("rules[%d].resources", i)
			}
		}
	}
	return "", ""
}

func checkNamespaceSelectors(c *checker) {
	namespaces, unknown := c.list("Namespace", "")
	labelled := map[string]bool{}
	for _, namespace := range namespaces {
		for key := range namespace.GetLabels() {
			labelled[key] = true
		}
	}
	keys := slices.Sorted(maps.Keys(labelled))
	for _, h := range c.chosen() {
		all := requirements(h.NamespaceSelector)
		if len(all) == 0 {
			continue
		}
		if at := slices.IndexFunc(all, func(r metav1.LabelSelectorRequirement) bool { return !optsIn(r) && r.Key != nameLabel }); at >= 0 && !h.mutates {
			c.webhook(h, "namespaceSelector", Finding{Severity: c.severity(h, ""), Request: "every request in a namespace with the label " + all[at].Key, Message: "whoever may edit a namespace can turn the webhook off with the label " + all[at].Key})
		}
		c.clusterScoped(h)
		switch {
		case !c.onCluster:
			c.undecided(framework.Unsupported, nil, "files do not have every namespace: whether a namespaceSelector selects one is not judged")
		case unknown != "":
			c.inconclusive(h.configuration, unknown)
		default:
			c.selectsNone(h, all, namespaces, keys)
		}
	}
}

// clusterScoped checks that the selector has an effect for each rule.
func (c *checker) clusterScoped(h *webhook) {
	for i, rule := range h.Rules {
		only := len(rule.Resources) > 0 && len(rule.APIGroups) > 0
		for _, resource := range rule.Resources {
			for _, group := range rule.APIGroups {
				known := c.Find(group, resource)
				only = only && len(known) > 0 && !known[0].Namespaced && resource != "namespaces"
			}
		}
		if only {
			c.webhook(h, fmt.Sprintf("rules[%d].resources", i), Finding{Severity: Note, Request: operations(rule)[0] + " " + rule.Resources[0], Message: "these resources have no namespace: the namespaceSelector never excludes them"})
		}
	}
}

// selectsNone checks that the selector matches a namespace of the cluster, and that its labels are not misspelt.
func (c *checker) selectsNone(h *webhook, all []metav1.LabelSelectorRequirement, namespaces []*object, keys []string) {
	selector, err := metav1.LabelSelectorAsSelector(h.NamespaceSelector)
	if err != nil {
		return // readWebhooks refuses it
	}
	if !slices.ContainsFunc(namespaces, func(o *object) bool { return selector.Matches(labels.Set(o.GetLabels())) }) {
		severity := Note
		if !h.mutates {
			severity = Warning
		}
		c.webhook(h, "namespaceSelector", Finding{Severity: severity, Message: "no namespace matches: the webhook is called for no object in a namespace"})
	}
	for _, r := range all {
		if near := suggest.Nearest(r.Key, keys); !slices.Contains(keys, r.Key) && near != "" {
			c.webhook(h, "namespaceSelector", Finding{Severity: Warning, Message: fmt.Sprintf("no namespace has the label %s; is %s meant?", r.Key, near)})
		}
	}
}
