package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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

// fixFor returns how a webhook leaves out probes: those in namespaces by the name of the namespace. A namespaceSelector does not apply to the
// others, of which the first has another fix.
func fixFor(h *webhook, probes []probe) string {
	var inside []probe
	condition := "leave out %s with a matchCondition, such as %s, or name fewer resources"
	fix, others := "", ""
	for _, p := range probes {
		switch {
		case len(excludable(h, []probe{p})) > 0:
			inside = append(inside, p)
		case others != "":
		case p.selected() == ordinary:
			others = "let namespaces opt in with a label in namespaceSelector, or use failurePolicy Ignore"
		case h.backend != nil && p.selected() == h.backend.namespace: // default
			others = "give the webhook a namespace of its own, and exclude that by its name"
		case p.selected() != "" && p.selected() != metav1.NamespaceDefault:
			others = fmt.Sprintf("take %s out of the namespaces in namespaceSelector", p.selected())
		case p.User.Name == node:
			others = fmt.Sprintf(condition, p.Resource.Resource, `!("system:nodes" in request.userInfo.groups)`)
		default:
			others = fmt.Sprintf(condition, p.Resource.Resource, fmt.Sprintf("request.userInfo.username != %q", p.User.Name))
		}
	}
	if len(inside) > 0 {
		fix = fmt.Sprintf("%s [%s]; ", byName, strings.Join(excludable(h, inside), ", "))
	}
	return strings.TrimSuffix(fix+others, "; ")
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
func (h *webhook) without(namespaces []string) metav1.LabelSelector {
	selector := ptr.Deref(h.NamespaceSelector.DeepCopy(), metav1.LabelSelector{})
	names := metav1.LabelSelectorRequirement{Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn}
	selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		if r.Key != nameLabel || r.Operator != metav1.LabelSelectorOpNotIn {
			return false
		}
		names.Values = append(names.Values, r.Values...)
		return true
	})
	for _, namespace := range namespaces {
		if !slices.Contains(names.Values, namespace) {
			names.Values = append(names.Values, namespace)
		}
	}
	selector.MatchExpressions = append(selector.MatchExpressions, names)
	return selector
}
