package rules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

func bindings() []Definition {
	return []Definition{{
		ID: "PO-BIND-1", Name: "bindings-select", Level: framework.Must,
		Title:  "Each policy has a binding, and each binding names a policy.",
		Why:    "A policy without a binding does nothing, and nothing says so.",
		Fix:    "Correct spec.policyName, or add the binding.",
		Source: []string{"https://github.com/kubescape/kubescape/issues/3394", "https://github.com/kyverno/kyverno/issues/15094"},
		Check: func(t *T) {
			t.Reached()
			var names, bound []string
			for _, p := range t.List() {
				names = append(names, p.GetKind()+"Binding "+p.GetName())
			}
			for _, b := range t.Bindings() {
				name := b.GetKind() + " " + b.spec.PolicyName
				bound = append(bound, name)
				if !slices.Contains(names, name) {
					t.Errorf("%s %q: policyName %q names no policy of the Subject", b.GetKind(), b.GetName(), b.spec.PolicyName)
				}
			}
			for i, p := range t.List() {
				if !slices.Contains(bound, names[i]) {
					t.Errorf("%s %q has no binding", p.GetKind(), p.GetName())
				} else if p.Mutating() && !t.changes(p) {
					t.Unobserved("%s %q: it changes no request that was made from the samples", p.GetKind(), p.GetName())
				} else if !p.Mutating() && !slices.ContainsFunc(t.Cases, func(c *Case) bool { return c.Evaluated(p.GetName()) }) {
					t.Unobserved("%s %q: no request that was made from the samples is evaluated by it", p.GetKind(), p.GetName())
				}
			}
		},
	}}
}

// params are the rules about params.
func params() []Definition {
	return []Definition{{
		ID: "PO-BIND-2", Name: "missing-params", Level: framework.Must,
		Title:  "Without its param, a policy lets no bad object pass.",
		Why:    "Whoever deletes the param, or works before it exists, is not checked.",
		Fix:    "parameterNotFoundAction: Deny. If namespaces opt in by a param, waive the rule.",
		Source: []string{"https://github.com/openshift/cluster-capi-operator/issues/321", "https://github.com/kubernetes/kubernetes/issues/130887"},
		Check: func(t *T) {
			t.must(len(t.params()) > 0, "no binding of a ValidatingAdmissionPolicy names a param of the Subject")
			t.must(len(t.Bad) > 0, "there is no bad object")
			if !t.sent(Paramless) && t.Unsent[Paramless] == "" {
				t.Unobserved("a param could not be deleted: a policy of the Subject guards it, or it has a finalizer")
			}
			t.refused(Paramless)
		},
	}, {
		ID: "PO-BIND-3", Name: "param-shapes", Level: framework.Must,
		Title:  "Each optional field of a param may be absent or empty, and the order of a list in it changes no decision.",
		Why:    "Whoever writes a param without the field makes every request fail, or switches the policy off. Whoever sorts a list changes what is allowed.",
		Fix:    "has(params.x), or make the field required in the CustomResourceDefinition. Use exists(…) and no index; if the order has a meaning, waive the rule.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/b7be79a"},
		Check: func(t *T) {
			t.must(len(t.params()) > 0, "no binding of a ValidatingAdmissionPolicy names a param of the Subject")
			t.must(len(t.Shapes) > 0 || t.sent(Reordered) || t.Unsent[Shapes] != "", "the API server, or a policy, refuses each variant of the params")
			for _, c := range t.each(Shapes) {
				t.evaluated(c.Control)
				t.notCut(c)
				for _, text := range c.Errors() {
					if found := bindingOf.FindStringSubmatch(text); found != nil && t.Shapes[found[1]] != "" {
						t.Errorf("%s: %s: %s", c.Control.What, t.Shapes[found[1]], text)
					}
				}
			}
			for _, c := range t.each(Reordered) {
				if t.says(c) {
					t.differ(c)
				}
			}
		},
	}}
}

// actions are the rules about validationActions.
func actions() []Definition {
	return []Definition{{
		ID: "PO-BIND-5", Name: "audit-means-audit", Level: framework.Must,
		Title:  "A binding without the action Deny refuses nothing.",
		Why:    "Errors of configuration and of auditAnnotations ignore validationActions: a roll-out that should only observe stops requests.",
		Fix:    "parameterNotFoundAction: Allow until the binding has the action Deny; auditAnnotations without errors.",
		Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go"},
		Check: func(t *T) {
			observing := t.Observing()
			t.must(len(observing) > 0, "each binding has the action Deny")
			for _, c := range t.each(Observed) {
				t.evaluated(c)
				if refusal := c.Refusal(); strings.Contains(refusal, "ValidatingAdmissionPolicy") {
					t.Errorf("%s: refused: %s", c.What, refusal)
				}
			}
			for _, c := range t.Cases {
				found := bindingOf.FindStringSubmatch(c.Refusal())
				if found != nil && slices.ContainsFunc(observing, func(b binding) bool { return b.GetName() == found[1] }) {
					t.Errorf("%s: refused: %s", c.What, c.Refusal())
				}
			}
		},
	}}
}

// bindingOf is the binding that a refusal or a warning names.
var bindingOf = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']*' with binding '([^']*)'`)
