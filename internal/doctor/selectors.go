package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admissiontest/admissiontest/framework"
)

func checkObjectSelectors(c *checker, h *webhook) {
	all := requirements(h.ObjectSelector)
	if len(all) == 0 {
		return
	}
	in, out := slices.IndexFunc(all, optsIn), slices.IndexFunc(all, func(r metav1.LabelSelectorRequirement) bool { return !optsIn(r) })
	if in >= 0 {
		if request, field := withoutLabels(h); request != "" {
			c.webhook(h, field, Finding{Severity: Warning, Request: request, Message: fmt.Sprintf("the object of such a request has no labels, and the objectSelector wants %q: the webhook is never called for it", all[in].Key)})
		}
	}
	f := Finding{Severity: c.severity(h, "")}
	switch {
	case h.mutates || len(h.Rules) == 0:
		return
	case out >= 0:
		f.Request, f.Message = h.anyRequest()+" with the label "+all[out].Key, "whoever creates an object can avoid the webhook by the label "+all[out].Key
	default:
		f.Severity, f.Fix = Note, "leave out the objectSelector if objects without the label must be checked too"
		f.Request, f.Message = h.anyRequest()+" without the label "+all[in].Key, "objects opt in: an object without the label "+all[in].Key+" is not checked"
	}
	c.webhook(h, "objectSelector", f)
}

// anyRequest returns the operation and resource of a request of the first rule.
func (h *webhook) anyRequest() string {
	return operations(h.Rules[0])[0] + " " + strings.Join(h.Rules[0].Resources, ", ")
}

// withoutLabels returns a request of a rule whose objects have no labels, and the field of the rule.
func withoutLabels(h *webhook) (request, field string) {
	for i, rule := range h.Rules {
		for _, resource := range rule.Resources {
			_, subresource, _ := strings.Cut(resource, "/")
			at := slices.IndexFunc(operations(rule), func(operation string) bool { return possible(subresource, operation) })
			if at >= 0 && slices.Contains(append(connects(), "eviction", "binding", "scale"), subresource) {
				return operations(rule)[at] + " " + resource, fmt.Sprintf("rules[%d].resources", i)
			}
		}
	}
	return "", ""
}

func checkNamespaceSelectors(c *checker, h *webhook) {
	all := requirements(h.NamespaceSelector)
	if len(all) == 0 {
		return
	}
	if at := slices.IndexFunc(all, func(r metav1.LabelSelectorRequirement) bool { return !optsIn(r) && r.Key != nameLabel }); at >= 0 && !h.mutates {
		c.webhook(h, "namespaceSelector", Finding{Severity: c.severity(h, ""), Request: "every request in a namespace with the label " + all[at].Key, Message: "whoever may edit a namespace can turn the webhook off with the label " + all[at].Key})
	}
	if !c.onCluster {
		c.undecided(framework.Unsupported, nil, "files do not have every namespace: whether a namespaceSelector selects one is not judged")
	} else if !c.selectsNamespace(h.NamespaceSelector) {
		severity := Note
		if !h.mutates {
			severity = Warning
		}
		c.webhook(h, "namespaceSelector", Finding{Severity: severity, Message: "no namespace matches: the webhook is called for no object in a namespace"})
	}
}

// selectsNamespace reports whether a selector selects a namespace of the cluster.
func (w *world) selectsNamespace(selector *metav1.LabelSelector) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && slices.ContainsFunc(w.byKind["Namespace"], func(o *object) bool { return parsed.Matches(labels.Set(o.GetLabels())) })
}
