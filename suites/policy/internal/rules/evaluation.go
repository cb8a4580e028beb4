package rules

import (
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
)

func evaluation() []Definition {
	return []Definition{{
		ID: "PO-ERR-1", Name: "no-evaluation-error", Level: framework.Must,
		Title:  "Each request that the API server accepts and the policy matches is evaluated without an error.",
		Why:    "With failurePolicy Fail, users read \"no such key\" instead of the message. With Ignore, the policy is off for the request.",
		Fix:    "Guard each level with has(), or read it with .? and orValue.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/issues/58", "https://github.com/kyverno/policies/pull/1509"},
		Check: func(t *T) {
			t.noErrors(made()...)
		},
	}, {
		ID: "PO-ERR-2", Name: "ignore-is-no-bypass", Level: framework.Must,
		Title:  "With failurePolicy Ignore, an evaluation error never lets a bad object pass.",
		Why:    "Whoever wants to pass leaves out the field that the expression reads.",
		Fix:    "Guard the access, or use failurePolicy Fail with narrow matchConditions.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/8916"},
		Check: func(t *T) {
			t.must(slices.ContainsFunc(t.List(), func(p Policy) bool { return !p.Mutating() && p.IgnoresErrors() }), "no validating policy has failurePolicy Ignore")
			t.needBad() // what belongs to the defect is not varied
			for _, c := range t.each(Samples, Variants) {
				if c.Bad < 0 || !t.says(c) {
					continue
				}
				t.Reached()
				if found := c.Errors(); len(found) > 0 && c.Refusal() == "" {
					t.Errorf("%s: allowed, because of an error: %s", c.What, found[0])
				}
			}
		},
	}}
}

func expressions() []Definition {
	return []Definition{{
		ID: "PO-ERR-3", Name: "match-conditions-hold", Level: framework.Must,
		Title:  "No matchCondition has an error, and none uses namespaceObject, which is always null there.",
		Why:    "With failurePolicy Fail, an error refuses the request. With Ignore, the policy is off for it.",
		Fix:    "Guard each level with has(). Use a namespaceSelector or a validation for what depends on the namespace.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/17018", "https://github.com/kubescape/kubescape/issues/3222"},
		Check: func(t *T) {
			t.must(len(t.expressionsOf("matchConditions")) > 0, "no policy has matchConditions")
			for _, p := range t.List() {
				for _, each := range p.Expressions("matchConditions") {
					if cel.Names(each, "namespaceObject") {
						t.Errorf("%s %q: the matchCondition %s uses namespaceObject, which is always null in matchConditions", p.GetKind(), p.GetName(), each)
					}
				}
			}
			t.noErrorOf("matchConditions")
		},
	}, {
		ID: "PO-ERR-4", Name: "fields-exist", Level: framework.Must,
		Title:  "Each path in an expression exists in some kind that the policy matches.",
		Why:    "A misspelt field in has() switches a check off, and no request shows it.",
		Fix:    "Correct the path.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/eaf3b83"},
		Check: func(t *T) {
			t.must(t.validating(), "there is no ValidatingAdmissionPolicy")
			if len(t.each(Samples)) > 0 {
				t.Reached()
			}
			for _, missing := range t.Missing {
				t.Errorf("%s: no kind that it matches has %s", missing.Policy, missing.Path)
			}
			for _, what := range t.NotKnown {
				t.Unobserved("whether a kind has this is not known: %s", what)
			}
		},
	}}
}

// operations are the rules about what else is evaluated, and about messages.
func operations() []Definition {
	return []Definition{{
		ID: "PO-ERR-5", Name: "every-operation", Level: framework.Must,
		Title:  "DELETE, where object is null, gets a decision and no error.",
		Why:    "A policy with DELETE in its rules that reads object refuses every deletion, and namespaces hang.",
		Fix:    "Leave DELETE out of the operations, or read oldObject if object is null.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10576", "https://kep.k8s.io/3488"},
		Check: func(t *T) {
			t.must(t.handles("DELETE"), "no policy has DELETE in its operations")
			t.noErrors(Deletions, Controller)
		},
	}, {
		ID: "PO-ERR-6", Name: "message-is-usable", Level: framework.Should,
		Title:  "A refusal has the author's message, and not the expression.",
		Why:    "Users cannot do anything with \"failed expression: …\".",
		Fix:    "Set message; with messageExpression too, for when that has an error. An expression belongs into messageExpression.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/1b9c318"},
		Check: func(t *T) {
			t.must(t.validating(), "MutatingAdmissionPolicies have no messages")
			for _, p := range t.List() {
				for _, text := range p.Messages() {
					if IsExpression(text) {
						t.Errorf("%s %q: the message is an expression, which clients get as it is: %s", p.GetKind(), p.GetName(), text)
					}
				}
			}
			if !slices.ContainsFunc(t.List(), func(p Policy) bool { return slices.Contains(p.Messages(), "") }) { // a message is sent also if messageExpression has an error
				t.Reached()
			} else if len(t.Bad) == 0 {
				t.LogOnce("a validation has no message, and there is no bad object")
			}
			for _, c := range t.each(Samples, Variants) {
				if refusal := c.Refusal(); refusal != "" && strings.Contains(refusal, "ValidatingAdmissionPolicy") && len(c.Errors()) == 0 {
					t.Reached()
					if strings.Contains(refusal, "failed expression:") {
						t.Errorf("%s: refused with the expression as message: %s", c.What, refusal)
					}
				}
			}
		},
	}, {
		ID: "PO-ERR-7", Name: "annotations-never-decide", Level: framework.Must,
		Title:  "No auditAnnotation refuses a request.",
		Why:    "With failurePolicy Fail, an error in a valueExpression refuses what all validations allow, whatever the validationActions are.",
		Fix:    "orValue(''), and no authorizer in a valueExpression.",
		Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go"},
		Check: func(t *T) {
			t.must(slices.ContainsFunc(t.List(), func(p Policy) bool {
				return !p.IgnoresErrors() && len(p.Expressions("auditAnnotations")) > 0
			}), "no policy that has auditAnnotations refuses requests because of errors")
			t.noErrorOf("auditAnnotations")
		},
	}}
}

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

// made are the groups of requests that create or update objects: an error in any of them counts. Large has its own rule, and so have
// requests without the params that the policies ask for.
func made() []Group {
	return []Group{
		Samples, Fixes, Variants, Generated, Unrelated, Lacking, Repairs, Violations, Siblings, Subwrites, Elements, Finalizers, Renamed, Embedded, Children, Owned,
		Applied, Reapplied, Verbs, Versions, Exempted, Constants, Inert, Foreign, Forms, Orders, Existing, Reordered,
	}
}

// expressionsOf returns the expressions of a list of all policies.
func (t *T) expressionsOf(list string) []string {
	var all []string
	for _, p := range t.List() {
		all = append(all, p.Expressions(list)...)
	}
	return all
}

// noErrorOf fails for each request with an evaluation error of an expression in a list of the policies.
func (t *T) noErrorOf(list string) {
	expressions := t.expressionsOf(list)
	for _, c := range t.each(append(made(), Deletions, Controller)...) {
		t.noError(c, func(text string) bool { return ErrorOf(text, expressions) })
	}
}

// noErrors fails for each request of groups with an evaluation error.
func (t *T) noErrors(groups ...Group) {
	others := append(t.expressionsOf("matchConditions"), t.expressionsOf("auditAnnotations")...) // ERR-3 and ERR-7 are about these
	for _, c := range t.each(groups...) {
		failed := t.noError(c, func(text string) bool { return !ErrorOf(text, others) })
		if !failed && c.After.Status.Code >= 500 && !t.mutating() {
			t.Errorf("%s: %d, %s; without the policies: %d", c.What, c.After.Status.Code, c.Refusal(), c.Before.Status.Code)
		}
	}
}

// noError fails if a response has an evaluation error that a rule is about. It reports whether it has.
func (t *T) noError(c *Case, about func(text string) bool) bool {
	t.evaluated(c)
	t.notCut(c)
	found := c.Errors()
	i := slices.IndexFunc(found, about) // the others are usually the same error of the probe
	if i >= 0 {
		t.Errorf("%s: %s; without the policies: %d", c.What, found[i], c.Before.Status.Code)
	}
	return i >= 0
}

// notCut says that nothing is known about errors in a response if some may be cut off.
func (t *T) notCut(c *Case) {
	if c.Cut() {
		t.Unobserved("%s: the warnings have more than 4096 characters, so the API server may have cut an error", c.What)
	}
}

// evaluated records that a policy was evaluated for a request. Of a MutatingAdmissionPolicy it is only known that it changed some request.
func (t *T) evaluated(c *Case) {
	if c.Evaluated("") || !t.validating() && slices.ContainsFunc(t.mutators(), t.changes) {
		t.Reached()
	}
}
