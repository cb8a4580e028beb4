package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// excludable returns the namespaces that a webhook can leave out so that it is not called for any of the probes, or none if there is no
// such selector: a request has no namespace, or one that can be any, or the webhook names its namespaces.
func excludable(h *webhook, probes []probe) (namespaces []string) {
	for _, r := range requirements(h.NamespaceSelector) {
		if r.Key == nameLabel && optsIn(r) {
			return nil
		}
	}
	for _, p := range probes {
		switch namespace := p.selected(); {
		case namespace == "", namespace == ordinary, namespace == metav1.NamespaceDefault:
			return nil
		case !slices.Contains(namespaces, namespace):
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// fixFor returns how a webhook leaves out probes: requests in namespaces by the name of the namespace, and the others by a
// matchCondition, because a namespaceSelector does not apply to them.
func fixFor(h *webhook, probes []probe) string {
	inside := func(p probe) bool { return len(excludable(h, []probe{p})) > 0 }
	var fixes []string
	if namespaces := excludable(h, slices.DeleteFunc(slices.Clone(probes), func(p probe) bool { return !inside(p) })); len(namespaces) > 0 {
		fixes = append(fixes, fmt.Sprintf("%s [%s]", byName, strings.Join(namespaces, ", ")))
	}
	for _, p := range probes {
		switch {
		case inside(p):
		case p.selected() == ordinary:
			return strings.Join(append(fixes, "let namespaces opt in with a label in namespaceSelector, or use failurePolicy Ignore"), "; ")
		default:
			condition := fmt.Sprintf("request.userInfo.username != %q", p.User.Name)
			if p.User.Name == node {
				condition = `!("system:nodes" in request.userInfo.groups)`
			}
			return strings.Join(append(fixes, fmt.Sprintf("leave out %s with a matchCondition, such as %s, or name fewer resources", p.Resource.Resource, condition)), "; ")
		}
	}
	return strings.Join(fixes, "; ")
}

// selected returns the namespace that a namespaceSelector selects or not: of a Namespace, the object itself.
func (p probe) selected() string {
	if p.Resource.Group == "" && p.Resource.Resource == "namespaces" {
		return p.Name
	}
	return p.Namespace
}

// setPatches sets the patches of findings that are gone without some namespaces. All of a webhook have the same selector, which leaves
// out the namespaces of all of them: the one that is applied last does not undo the others.
func (r *Report) setPatches() {
	names := map[*webhook][]string{}
	for _, f := range r.Findings {
		for _, e := range f.exclude {
			names[e.webhook] = append(names[e.webhook], e.namespaces...)
		}
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; len(f.exclude) > 0 {
			f.Patch = nil
			for _, e := range f.exclude {
				f.Patch = append(f.Patch, Operation{"add", e.webhook.pointer("namespaceSelector"), e.webhook.without(names[e.webhook])})
			}
		}
	}
}

// without returns the namespaceSelector of a webhook that leaves out more namespaces.
func (h *webhook) without(namespaces []string) *metav1.LabelSelector {
	selector := h.NamespaceSelector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	at := slices.IndexFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == nameLabel && r.Operator == metav1.LabelSelectorOpNotIn
	})
	if at < 0 {
		at = len(selector.MatchExpressions)
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn})
	}
	one := &selector.MatchExpressions[at]
	for _, namespace := range namespaces {
		if !slices.Contains(one.Values, namespace) {
			one.Values = append(one.Values, namespace)
		}
	}
	return selector
}
