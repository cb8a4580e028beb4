package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// fixFor returns how a webhook leaves out probes: those in namespaces by the name of the namespace, and the others, of which the first has a
// fix, in another way. If a namespaceSelector leaves out all of them, it also returns its namespaces.
func fixFor(h *webhook, probes []probe) (fix string, namespaces []string) {
	byLabel := slices.ContainsFunc(requirements(h.NamespaceSelector), func(r metav1.LabelSelectorRequirement) bool { return r.Key == nameLabel && optsIn(r) })
	const condition = "leave out %s with a matchCondition, such as %s, or name fewer resources"
	others := ""
	for _, p := range probes {
		switch namespace := p.selected(); {
		case slices.Contains(namespaces, namespace):
		case !byLabel && namespace != "" && namespace != ordinary && namespace != metav1.NamespaceDefault:
			namespaces = append(namespaces, namespace)
		case others != "":
		case namespace == ordinary:
			others = "let namespaces opt in with a label in namespaceSelector, or use failurePolicy Ignore"
		case byLabel && namespace != "":
			others = fmt.Sprintf("take %s out of the namespaces in namespaceSelector", namespace)
		case h.backend != nil && namespace == h.backend.namespace:
			others = "give the webhook a namespace of its own, and exclude that by its name"
		case p.User.Name == node:
			others = fmt.Sprintf(condition, p.Resource.Resource, `!("system:nodes" in request.userInfo.groups)`)
		default:
			others = fmt.Sprintf(condition, p.Resource.Resource, fmt.Sprintf("request.userInfo.username != %q", p.User.Name))
		}
	}
	fix = fmt.Sprintf("%s [%s]", byName, strings.Join(namespaces, ", "))
	switch {
	case others == "":
		return fix, namespaces
	case len(namespaces) == 0:
		return others, nil
	}
	return fix + "; " + others, nil
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
