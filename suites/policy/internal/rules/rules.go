// Package rules has the rules of the policy contract.
package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/policy/internal/check"
)

// T is the check of one rule: a Subject, and the responses to all requests about it.
type T struct {
	*rule.T
	check.Subject
	*check.Observations
}

// Definition is a rule with its check.
type Definition = rule.Definition[*T]

// All returns the rules, in the order of their checks.
func All() []Definition {
	return slices.Concat(verdicts(), evaluation(), expressions(), doors(), life(), mutations(), bindings())
}

// each returns the accepted requests of groups. If there are none, it logs why.
func (t *T) each(groups ...check.Group) []*check.Case {
	found := t.Of(groups...)
	for _, c := range t.Cases {
		if len(found) == 0 && slices.Contains(groups, c.Group) {
			t.LogOnce(fmt.Sprintf("%s: not accepted without the policies: %s", c.What, c.Before.Status.Message))
		}
	}
	return found
}

// must ends the check if the rule does not apply to the Subject.
func (t *T) must(applies bool, format string, args ...any) {
	if !applies {
		t.Unsupported(format, args...)
	}
}

func (t *T) validating() bool {
	return slices.ContainsFunc(t.List(), func(p check.Policy) bool { return !p.Mutating() })
}

func (t *T) mutating() bool { return slices.ContainsFunc(t.List(), check.Policy.Mutating) }

func (t *T) handles(operation string) bool {
	return slices.ContainsFunc(t.List(), func(p check.Policy) bool { return p.Handles(operation) })
}

// allowed fails for each request of groups that validating policies refuse.
func (t *T) allowed(groups ...check.Group) {
	t.must(t.validating(), "there is no ValidatingAdmissionPolicy")
	for _, c := range t.each(groups...) {
		t.Reached()
		if refusal := c.Refusal(); strings.Contains(refusal, "ValidatingAdmissionPolicy") {
			t.Errorf("%s: refused: %s; without the policies: %d", c.What, refusal, c.Before.Status.Code)
		}
	}
}

// decided reports whether the sample of a case gets the verdict that the Subject declares: otherwise VERDICT-1 fails,
// and other rules say nothing about it.
func (t *T) decided(c *check.Case) bool {
	return slices.ContainsFunc(t.each(check.Samples), func(s *check.Case) bool {
		return s.Good == c.Good && s.Bad == c.Bad && (s.Good >= 0 && s.Refusal() == "" || s.Bad >= 0 && strings.Contains(s.Refusal(), t.Bad[s.Bad].Denied))
	})
}

// refused fails for each request of groups, made from a bad object that is refused, that the policies do not refuse.
func (t *T) refused(groups ...check.Group) {
	for _, c := range t.each(groups...) {
		if c.Bad < 0 || !t.decided(c) {
			continue
		}
		t.Reached()
		if c.Refusal() == "" {
			t.Errorf("%s: %s, want a refusal with %q, which the creation of bad[%d] gets", c.What, outcome(c), t.Bad[c.Bad].Denied, c.Bad)
		}
	}
}

func outcome(c *check.Case) string {
	if refusal := c.Refusal(); refusal != "" {
		return "refused: " + refusal
	}
	return fmt.Sprintf("%d, allowed", c.After.Status.Code)
}

func verdicts() []Definition {
	return []Definition{{
		ID: "PO-VERDICT-1", Name: "samples-decide", Level: framework.Must,
		Title:  "Good objects are allowed, and bad objects are refused with the declared message.",
		Why:    "A test in which something else refuses the bad object says nothing about the policy.",
		Fix:    "Change the policy, or give samples with one defect each.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/58f07dd"},
		Check: func(t *T) {
			for _, why := range t.NotServed {
				t.Incomplete("%s", why)
			}
			for _, c := range t.Cases {
				if (c.Group == check.Samples || c.Group == check.Fixes) && !c.Before.Allowed() {
					t.Incomplete("%s: refused without the policies: %s", c.What, c.Before.Status.Message)
				}
			}
			for _, c := range t.each(check.Samples, check.Fixes) {
				t.Reached()
				bad := c.Group == check.Samples && c.Bad >= 0
				switch refusal := c.Refusal(); {
				case bad && !strings.Contains(refusal, t.Bad[c.Bad].Denied):
					t.Errorf("%s: %s, want a refusal with %q", c.What, outcome(c), t.Bad[c.Bad].Denied)
				case !bad && refusal != "":
					t.Errorf("%s: %s, want allowed", c.What, outcome(c))
				case !t.mutating() && !c.Evaluated(""):
					t.Unobserved("%s: no policy is evaluated for it, so it says nothing: rules, selectors and conditions leave it out", c.What)
				}
			}
		},
	}}
}

// undefined is what the type check of Kubernetes says about a field that a kind does not have.
var undefined = regexp.MustCompile(`undefined field '([^']+)'`)

func evaluation() []Definition {
	return []Definition{{
		ID: "PO-ERR-1", Name: "no-evaluation-error", Level: framework.Must,
		Title:  "Each request that the API server accepts and the policy matches is evaluated without an error.",
		Why:    "With failurePolicy Fail, users read \"no such key\" instead of the message. With Ignore, the policy is off for the request.",
		Fix:    "Guard each level with has(), or read it with .? and orValue.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/issues/58", "https://github.com/kyverno/policies/pull/1509"},
		Check: func(t *T) {
			if t.NotSent > 0 {
				t.Unobserved("%d fields of samples were not varied: give smaller samples", t.NotSent)
			}
			for _, c := range t.each(check.Samples, check.Fixes, check.Variants, check.Generated, check.Unrelated, check.Repairs, check.Violations, check.Siblings, check.Scales, check.Ephemeral) {
				t.evaluated(c)
				t.errorsOf(c)
			}
		},
	}, {
		ID: "PO-ERR-2", Name: "ignore-is-no-bypass", Level: framework.Must,
		Title:  "With failurePolicy Ignore, an evaluation error never lets a bad object pass.",
		Why:    "Whoever wants to pass leaves out the field that the expression reads.",
		Fix:    "Guard the access, or use failurePolicy Fail with narrow matchConditions.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/8916"},
		Check: func(t *T) {
			t.must(slices.ContainsFunc(t.List(), func(p check.Policy) bool { return !p.Mutating() && p.IgnoresErrors() }), "no validating policy has failurePolicy Ignore")
			t.needBad() // what belongs to the defect is not varied
			for _, c := range t.each(check.Samples, check.Variants) {
				if c.Bad < 0 || !t.decided(c) || c.Path != nil && t.partOfDefect(c) {
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
		ID: "PO-ERR-4", Name: "fields-exist", Level: framework.Must,
		Title:  "Each field in an expression exists in some kind of the API groups that the policy matches.",
		Why:    "A misspelt field in has() switches a check off, and no request shows it.",
		Fix:    "Correct the path.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/eaf3b83"},
		Check: func(t *T) {
			t.must(t.validating(), "the type check of Kubernetes is for ValidatingAdmissionPolicies")
			if len(t.each(check.Samples)) > 0 {
				t.Reached()
			}
			for _, warning := range t.Types {
				field := warning.Field
				if check.IsProbe(warning.Name) {
					continue
				}
				if found := undefined.FindStringSubmatch(warning.Text); found != nil && t.Fields[found[1]] {
					continue // another kind has it, or the type check does not know the whole schema
				} else if found == nil { // such as lists of different types that are added up, which works
					t.Unobserved("%s %s, %s, for %s: the type check of Kubernetes does not go on, so it says nothing about what uses this: %s; dyn(…) around an operand helps",
						warning.Kind, warning.Name, field, warning.Object.Kind, strings.TrimSpace(warning.Text))
					continue
				}
				t.Errorf("%s %s, %s, for %s: %s", warning.Kind, warning.Name, field, warning.Object.Kind, strings.TrimSpace(warning.Text))
			}
		},
	}, {
		ID: "PO-ERR-5", Name: "every-operation", Level: framework.Must,
		Title:  "DELETE, where object is null, gets a decision and no error.",
		Why:    "A policy with DELETE in its rules that reads object refuses every deletion, and namespaces hang.",
		Fix:    "Leave DELETE out of the operations, or read oldObject if object is null.",
		Source: []string{"https://github.com/kyverno/kyverno/issues/10576", "https://kep.k8s.io/3488"},
		Check: func(t *T) {
			t.must(t.handles("DELETE"), "no policy has DELETE in its operations")
			for _, c := range t.each(check.Deletions, check.Controller) {
				t.evaluated(c)
				t.errorsOf(c)
			}
		},
	}, {
		ID: "PO-ERR-6", Name: "message-is-usable", Level: framework.Should,
		Title:  "A refusal has the author's message, and not the expression.",
		Why:    "Users cannot do anything with \"failed expression: …\".",
		Fix:    "Set message; with messageExpression too, for when that has an error.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/1b9c318"},
		Check: func(t *T) {
			t.must(t.validating(), "MutatingAdmissionPolicies have no messages")
			for _, c := range t.each(check.Samples, check.Variants) {
				if refusal := c.Refusal(); refusal != "" && strings.Contains(refusal, "ValidatingAdmissionPolicy") && len(c.Errors()) == 0 {
					t.Reached()
					if strings.Contains(refusal, "failed expression:") {
						t.Errorf("%s: refused with the expression as message: %s", c.What, refusal)
					}
				}
			}
		},
	}}
}

// evaluated records that a policy was evaluated for a request. Whether a MutatingAdmissionPolicy was is not known.
func (t *T) evaluated(c *check.Case) {
	if c.Evaluated("") || !t.validating() {
		t.Reached()
	}
}

// errorsOf fails for the evaluation errors of a response.
func (t *T) errorsOf(c *check.Case) {
	if c.Cut() && len(c.Errors()) == 0 {
		t.Unobserved("%s: the warnings have more than 4096 characters, so the API server may have cut an error", c.What)
	}
	for _, text := range c.Errors() {
		t.Errorf("%s: %s; without the policies: %d", c.What, text, c.Before.Status.Code)
		return // the others are usually the same error of the probe
	}
	if refusal := c.Refusal(); strings.Contains(refusal, "evaluation error") || c.After.Status.Code >= 500 {
		t.Errorf("%s: %d, %s; without the policies: %d", c.What, c.After.Status.Code, refusal, c.Before.Status.Code)
	}
}

// partOfDefect reports whether what was varied in a bad object is, has or belongs to its defect.
func (t *T) partOfDefect(c *check.Case) bool {
	defect := t.Bad[c.Bad].Defect()
	return defect == nil || slices.ContainsFunc(defect, func(p check.Path) bool {
		n := min(len(p), len(c.Path))
		return slices.Equal(p[:n], c.Path[:n])
	})
}

func doors() []Definition {
	return []Definition{{
		ID: "PO-DOOR-1", Name: "update-into-violation", Level: framework.Must,
		Title:  "What the creation refuses, an update refuses.",
		Why:    "Anyone creates a good object, and then makes it bad.",
		Fix:    "operations: [CREATE, UPDATE]",
		Source: []string{"https://github.com/cozystack/cozystack/issues/2470"},
		Check:  func(t *T) { t.needBad(); t.refused(check.Violations) },
	}, {
		ID: "PO-DOOR-2", Name: "sibling-lists", Level: framework.Must,
		Title:  "A bad element of a list is refused in each other list with such elements.",
		Why:    "A bad init container does the same harm as a bad container.",
		Fix:    "One variable with all lists: object.spec.containers + object.spec.?initContainers.orValue([]) + …",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/138065", "https://github.com/kubescape/cel-admission-library/issues/82"},
		Check:  func(t *T) { t.needBad(); t.refused(check.Siblings) },
	}, {
		ID: "PO-DOOR-3", Name: "subresources", Level: framework.Must,
		Title:  "A defect that can be written through a subresource is refused there.",
		Why:    "A rule for a resource does not include its subresources: kubectl scale and kubectl debug write them.",
		Fix:    "resources: [deployments, deployments/scale]. The object of scale is a Scale.",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/1837", "https://github.com/kyverno/kyverno/issues/3118"},
		Check:  func(t *T) { t.needBad(); t.refused(check.Scales, check.Ephemeral) },
	}, {
		ID: "PO-DOOR-6", Name: "names", Level: framework.Must,
		Title:  "generateName changes no verdict.",
		Why:    "Objects of controllers have no name when policies see them.",
		Fix:    "Judge something else than the name.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/76680"},
		Check: func(t *T) {
			t.refused(check.Generated)
			for _, c := range t.each(check.Generated) {
				if c.Good >= 0 && t.decided(c) {
					t.Reached()
					if refusal := c.Refusal(); refusal != "" {
						t.Errorf("%s: refused: %s", c.What, refusal)
					}
				}
			}
		},
	}}
}

// needBad ends the check if no bad object has a fix: the rule needs a defect.
func (t *T) needBad() {
	t.must(slices.ContainsFunc(t.Bad, func(b check.Bad) bool { return b.Fix != nil }), "no bad object has a fix, so its defect is not known")
}

func life() []Definition {
	return []Definition{{
		ID: "PO-LIFE-1", Name: "stored-objects-can-change", Level: framework.Should,
		Title:  "An object that was stored before the policy can be changed elsewhere, and repaired.",
		Why:    "Otherwise a new policy stops controllers that label or annotate what exists.",
		Fix:    "Compare with oldObject: refuse only what the request makes bad.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/64907"},
		Check:  func(t *T) { t.allowed(check.Unrelated, check.Repairs) },
	}, {
		ID: "PO-LIFE-2", Name: "controllers-can-finish", Level: framework.Must,
		Title:  "An object in deletion can lose its finalizers, good or bad.",
		Why:    "Otherwise it, its owner and its namespace are never deleted.",
		Fix:    "A matchCondition: !has(object.metadata.deletionTimestamp)",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/129883", "https://github.com/kyverno/kyverno/issues/2508"},
		Check:  func(t *T) { t.allowed(check.Finalizers) },
	}, {
		ID: "PO-LIFE-3", Name: "namespaces-can-be-deleted", Level: framework.Must,
		Title:  "The namespace controller and the garbage collector can delete what the policy matches.",
		Why:    "Otherwise namespaces stay in the state Terminating.",
		Fix:    "Exempt exactly these users in a matchCondition.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/129883", "https://github.com/openshift/hypershift/pull/6616"},
		Check: func(t *T) {
			t.must(t.handles("DELETE"), "no policy has DELETE in its operations")
			for _, c := range t.each(check.Deletions) {
				t.evaluated(c) // a controller can be exempt
			}
			for _, c := range t.each(check.Controller) {
				if refusal := c.Refusal(); refusal != "" && len(c.Errors()) == 0 {
					t.Errorf("%s: refused: %s", c.What, refusal)
				}
			}
		},
	}}
}

func mutations() []Definition {
	return []Definition{{
		ID: "PO-MUT-1", Name: "idempotent", Level: framework.Must,
		Title:  "Applied twice, the policy does the same as applied once.",
		Why:    "The API server may call it again in one request, and clients send back what they got.",
		Fix:    "A matchCondition that is false if the change is there already.",
		Source: []string{"https://kep.k8s.io/3962"},
		Check: func(t *T) {
			t.must(t.mutating(), "there is no MutatingAdmissionPolicy")
			for _, c := range t.each(check.Reapplied) {
				t.Reached()
				if refusal := c.Refusal(); refusal != "" {
					t.Errorf("%s: refused: %s", c.What, refusal)
					continue
				}
				sent, _ := c.Request.Object.(*unstructured.Unstructured)
				for _, path := range check.Differences(sent.Object, c.After.Fields()) {
					t.Errorf("%s: the policies change it again, at %s", c.What, path)
				}
			}
		},
	}, {
		ID: "PO-MUT-4", Name: "no-immutable-change", Level: framework.Must,
		Title:  "An object that was stored before the policy can be updated.",
		Why:    "A policy that changes an immutable field on UPDATE makes each update fail: pods of jobs never finish.",
		Fix:    "operations: [CREATE]",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/4121", "https://github.com/kserve/kserve/issues/3159"},
		Check: func(t *T) {
			t.must(t.mutating(), "there is no MutatingAdmissionPolicy")
			for _, c := range t.each(check.Unrelated, check.Finalizers) {
				if c.Good < 0 {
					continue
				}
				t.Reached()
				if refusal := c.Refusal(); refusal != "" {
					t.Errorf("%s: %d: %s; without the policies: %d", c.What, c.After.Status.Code, refusal, c.Before.Status.Code)
				}
			}
		},
	}}
}

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
				name, _, _ := unstructured.NestedString(b.Object, "spec", "policyName")
				bound = append(bound, b.GetKind()+" "+name)
				if !slices.Contains(names, b.GetKind()+" "+name) {
					t.Errorf("%s %q: policyName %q names no policy of the Subject", b.GetKind(), b.GetName(), name)
				}
			}
			for i, p := range t.List() {
				if !slices.Contains(bound, names[i]) {
					t.Errorf("%s %q has no binding", p.GetKind(), p.GetName())
				} else if !p.Mutating() && !slices.ContainsFunc(t.Cases, func(c *check.Case) bool { return c.Evaluated(p.GetName()) }) {
					t.Unobserved("%s %q: no request that was made from the samples is evaluated by it", p.GetKind(), p.GetName())
				}
			}
		},
	}}
}
