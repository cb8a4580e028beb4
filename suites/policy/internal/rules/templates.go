package rules

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// costs are the rules about large objects.
func costs() []Definition {
	return []Definition{{
		ID: "PO-ERR-8", Name: "cost-has-room", Level: framework.Must,
		Title:  "With ten times as many elements in each list or map that an expression loops over, its cost stays below the limits.",
		Why:    "Kubernetes stops an expression at a cost of 1,000,000, and the expressions of a policy and its binding at 10,000,000: large objects are refused, or pass.",
		Fix:    "Compute once in a variable what a loop needs, and put no loop into a loop.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/124542", "https://github.com/kubescape/kubescape/issues/2560"},
		Check: func(t *T) {
			t.must(t.sent(Large), "no expression loops over a list or map that a sample has")
			for _, c := range t.each(Large) {
				t.noError(c, func(text string) bool { return strings.Contains(text, "cost") })
			}
		},
	}}
}

// templates are the rules about objects that others embed.
func templates() []Definition {
	return []Definition{{
		ID: "PO-DOOR-4", Name: "same-template-elsewhere", Level: framework.Should,
		Title:  "A defect in the template of an object is refused in what is created from the template too.",
		Why:    "A policy for Deployments does not see a Pod that anyone creates without a Deployment.",
		Fix:    "Add the other kind to the resources, and a variable that has the spec for each kind.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10575", "https://github.com/kubescape/cel-admission-library/commit/2841287"},
		Check: func(t *T) {
			t.mustCarry(Embedded, "no defect is in a template of another kind")
			t.refused(Embedded)
		},
	}, {
		ID: "PO-LIFE-5", Name: "children-are-admitted", Level: framework.Should,
		Title:  "What a controller creates from the template of a good object is admitted.",
		Why:    "A Deployment that is admitted, and whose Pods are refused, shows no error to its author.",
		Fix:    "The same check at each level.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10575"},
		Check: func(t *T) {
			t.must(t.sent(Children), "no good object has a template of another kind")
			t.allowed(Children)
		},
	}}
}

// quiet are the rules about mutations that others see as drift.
func quiet() []Definition {
	return []Definition{{
		ID: "PO-MUT-7", Name: "reapply-is-quiet", Level: framework.Should,
		Title:  "Applying the same manifest again changes nothing.",
		Why:    "GitOps tools apply again and again: each time the object gets a new generation, and controllers act on it.",
		Fix:    "Mutate an update as the creation, and set only what is absent.",
		Source: []string{"https://kep.k8s.io/3962", "https://github.com/open-policy-agent/gatekeeper/issues/2963"},
		Check: func(t *T) {
			t.mutates()
			for _, c := range t.each(Applied) {
				if !c.After.Allowed() || !c.Control.After.Allowed() {
					t.LogOnce(c.What + ": " + outcome(c))
					continue
				}
				t.Reached()
				for _, path := range c.Drift() {
					t.Errorf("%s: the policies change it, at %s", c.What, path)
				}
			}
		},
	}, {
		ID: "PO-MUT-8", Name: "owned-templates-stay", Level: framework.Must,
		Title:  "The template of an object with a controller stays as its owner wrote it.",
		Why:    "The owner sees another template than its own, and replaces the object again and again.",
		Fix:    "A matchCondition: !has(object.metadata.ownerReferences)",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/2963", "https://github.com/kubernetes/kubernetes/issues/105844"},
		Check: func(t *T) {
			t.mutates()
			t.must(t.sent(Owned), "no good object has a template of another kind")
			for _, c := range t.each(Owned) {
				sent, _ := c.Request.Object.(*unstructured.Unstructured)
				if !c.After.Allowed() || sent == nil {
					t.LogOnce(c.What + ": " + outcome(c))
					continue
				}
				t.Reached()
				for _, path := range vary.Differences(sent.Object, c.After.Fields()) {
					if path.In(c.Templates) && !c.Control.SetByServer(path) {
						t.Errorf("%s: the policies change it, at %s", c.What, path)
					}
				}
			}
		},
	}}
}
