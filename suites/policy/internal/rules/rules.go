// Package rules has the rules of the policy contract. It sends the requests that it derives from the samples of a Subject to a
// kube-apiserver, before and after the policies are installed (bench), and the rules judge the responses.
package rules

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// T is the check of one rule: a Subject, and the responses to all requests about it.
type T struct {
	*rule.T
	Subject
	*Observations
}

// handles reports whether a policy has an operation. Webhooks among the policies do not count.
func (t *T) handles(operation admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(t.List(), func(p Policy) bool { return handles(p.resourceRules(), operation) })
}

// Definition is a rule with its check.
type Definition = rule.Definition[*T]

// All returns the rules, in the order of their checks.
func All() []Definition {
	return slices.Concat(verdicts(), equals(), evaluation(), expressions(), operations(), costs(), doors(), exemptions(), templates(), life(), mutations(), orders(), patches(), elements(), quiet(), bindings(), params(), actions())
}

// each returns the accepted requests of groups. If there are none, it logs why.
func (t *T) each(groups ...Group) []*Case {
	found := t.Of(groups...)
	for _, group := range groups {
		if why := t.Unsent[group]; why != "" {
			t.Unobserved("%s", why)
		}
	}
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

// mutates ends the check if there is no mutation. The rule cannot be judged if a mutation changes no request.
func (t *T) mutates() {
	t.must(t.mutating(), "there is no MutatingAdmissionPolicy")
	for _, p := range t.mutators() {
		if !t.changes(p) {
			t.Unobserved("%s %q: it changes no request that was made from the samples: give a good object that it changes", p.GetKind(), p.GetName())
		}
	}
}

// changes reports whether a MutatingAdmissionPolicy changed a request, or had an error in one.
func (t *T) changes(p Policy) bool {
	if alone, sent := t.Alone[p.GetName()]; sent && handles(p.resourceRules(), admissionregistrationv1.Create) {
		return slices.ContainsFunc(alone, (*Case).mutated)
	}
	return slices.ContainsFunc(t.Of(Samples, Fixes, Unrelated, Repairs, Violations, Finalizers, Subwrites), (*Case).mutated)
}

// mustCarry ends the check if no request of a group carries a defect. None says what the bad objects lack, unless that is known.
func (t *T) mustCarry(group Group, none string) {
	t.needBad()
	t.mustHave(group)
	why := ""
	for _, c := range t.Cases {
		if c.Group == group {
			if why = c.Meaningless(); why == "" {
				return
			}
			why = ": " + why
		}
	}
	t.Unsupported("%s%s", none, why)
}

// mustHave ends the check if it is known why there is no request of a group.
func (t *T) mustHave(group Group) {
	t.must(t.Lacks[group] == "" || t.sent(group), "%s", t.Lacks[group])
}

// sent reports whether there is a request of one of the groups, accepted or not.
func (t *T) sent(groups ...Group) bool {
	return slices.ContainsFunc(t.Cases, func(c *Case) bool { return slices.Contains(groups, c.Group) })
}

// allowed fails for each request of groups that validating policies refuse. If they allow
// the same request of a controller that they do not know, the refusal is intended.
func (t *T) allowed(groups ...Group) {
	t.must(t.validating(), "there is no ValidatingAdmissionPolicy")
	for _, c := range t.each(groups...) {
		if c.Good >= 0 && t.byName(c) {
			continue
		}
		if twin := c.ByOperator; twin != nil && twin.Accepted() && twin.Refusal() == "" {
			c = twin
		}
		t.Reached()
		if refusal := c.Refusal(); strings.Contains(refusal, "ValidatingAdmissionPolicy") {
			t.Errorf("%s: refused: %s; without the policies: %d", c.What, refusal, c.Before.Status.Code)
		}
	}
}

// says reports whether the response to a request says something about the policies, and logs why not: its sample gets the verdict that
// the Subject declares (otherwise VERDICT-1 fails), and what it needs is so.
func (t *T) says(c *Case) bool {
	if why := c.Meaningless(); why != "" {
		t.LogOnce(c.What + ": it says nothing: " + why)
		return false
	}
	return !t.byName(c) && !t.otherwise(c) && slices.ContainsFunc(t.each(Samples), func(s *Case) bool {
		return s.Good == c.Good && s.Bad == c.Bad && (s.Good >= 0 && s.Refusal() == "" || s.Bad >= 0 && strings.Contains(s.Refusal(), t.Bad[s.Bad].Denied))
	})
}

// otherwise reports, and logs, that a request that was accepted before is refused by something else than a policy, so that it says
// nothing about them. If there are mutations, the cause can be what they make.
func (t *T) otherwise(c *Case) bool {
	if c.Refusal() == "" || c.Denied() || t.mutating() && c.After.Status.Code != http.StatusServiceUnavailable {
		return false
	}
	t.LogOnce(fmt.Sprintf("%s: refused by something else: %s", c.What, c.Refusal()))
	return true
}

// differ fails if the policies decide otherwise about a request than about its Control.
func (t *T) differ(c *Case) {
	if t.otherwise(c.Control) {
		return
	}
	t.evaluated(c.Control)
	if (c.Refusal() == "") != (c.Control.Refusal() == "") {
		t.Errorf("%s: %s; %s: %s", c.What, outcome(c), c.Control.What, outcome(c.Control))
	}
}

// byName reports, and logs, that a request is about a copy of a sample, about whose name the policies decide.
func (t *T) byName(c *Case) bool {
	copied := slices.Contains([]Group{Generated, Violations, Unrelated, Repairs, Finalizers, Subwrites, Versions}, c.Group) ||
		c.Group == Verbs && (c.Control.Group != Samples || !c.Request.DryRun)
	if !copied || c.own || !t.decidedByName(c) {
		return false
	}
	t.LogOnce(c.What + ": it says nothing, because under another name the object gets another decision")
	return true
}

// refused fails for each request of groups that carries a defect and that the policies do not refuse.
func (t *T) refused(groups ...Group) {
	for _, c := range t.each(groups...) {
		fix := c.Control != nil && c.Control.Group == Fixes
		if (c.Bad >= 0 || c.Group == Constants) && !fix && t.says(c) {
			t.Reached()
			if c.Refusal() == "" {
				t.Errorf("%s: %s, want a refusal", c.What, outcome(c))
			}
		}
	}
}

// accepted fails for each request of a group, made from a good object that is allowed, that is refused.
func (t *T) accepted(group Group) {
	for _, c := range t.each(group) {
		if c.Good >= 0 && t.says(c) {
			t.Reached()
			if c.Refusal() != "" {
				t.Errorf("%s: %s", c.What, outcome(c))
			}
		}
	}
}

func outcome(c *Case) string {
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
				if (c.Group == Samples || c.Group == Fixes) && !c.Before.Allowed() {
					t.Incomplete("%s: refused without the policies: %s", c.What, c.Before.Status.Message)
				}
			}
			if t.mutating() && !t.validating() {
				t.mutates()
			}
			evaluated := slices.ContainsFunc(t.Of(Samples), func(c *Case) bool { return c.Evaluated("") })
			for _, c := range t.each(Samples, Fixes) {
				t.Reached()
				bad, refusal := c.Group == Samples && c.Bad >= 0, c.Refusal()
				switch wrong := bad && !strings.Contains(refusal, t.Bad[c.Bad].Denied) || !bad && refusal != ""; {
				case t.otherwise(c):
					t.Unobserved("%s: refused by something else: %s", c.What, refusal)
				case wrong && c.otherName:
					t.Unobserved("%s: another sample has its name, and under another name it gets another decision", c.What)
				case wrong && bad:
					t.Errorf("%s: %s, want a refusal with %q", c.What, outcome(c), t.Bad[c.Bad].Denied)
				case wrong:
					t.Errorf("%s: %s, want allowed", c.What, outcome(c))
				case evaluated && !bad && t.refuseAll(): // no good object can be one that they match
				case evaluated && !t.handles(admissionregistrationv1.OperationType(c.Request.Operation())): // the other samples say it
				case !t.mutating() && !c.Evaluated(""):
					t.Unobserved("%s: no policy is evaluated for it, so it says nothing: rules, selectors and conditions leave it out", c.What)
				}
			}
		},
	}}
}

// refuseAll reports whether there are only policies that refuse whatever they match.
func (t *T) refuseAll() bool {
	return !slices.ContainsFunc(t.List(), func(p Policy) bool {
		return !slices.ContainsFunc(p.spec.Validations, func(v admissionregistrationv1.Validation) bool { return strings.TrimSpace(v.Expression) == "false" })
	})
}

// equals are the rules about requests that must get the same decision.
func equals() []Definition {
	return []Definition{{
		ID: "PO-VERDICT-2", Name: "equal-forms", Level: framework.Must,
		Title:  "Quantities of the same value get the same decision: 1, 1000m and 1e0; 1Gi, 1024Mi and 1073741824.",
		Why:    "An expression that compares quantities as text or as numbers refuses good objects, or lets bad ones pass.",
		Fix:    "quantity(string(x)), and isLessThan, isGreaterThan or compareTo.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/issues/78", "https://github.com/kubescape/cel-admission-library/commit/b6a3adc"},
		Check: func(t *T) {
			t.must(t.sent(Forms), "no sample has a quantity")
			for _, c := range t.each(Forms) {
				if t.says(c) {
					t.differ(c)
				}
			}
		},
	}, {
		ID: "PO-VERDICT-3", Name: "one-bad-element-is-enough", Level: framework.Must,
		Title:  "A bad element of a list of objects is refused at each position among good ones.",
		Why:    "An expression that reads the first element, or that needs one good element, lets the bad ones beside it pass.",
		Fix:    "all(…), or !exists(…), and no index. If the policy asks for one good element of several, waive the rule.",
		Source: []string{"https://github.com/kubescape/cel-admission-library/commit/cf521aa"},
		Check: func(t *T) {
			t.mustCarry(Elements, "no defect is in an element of a list of objects, apart from its name")
			t.refused(Elements)
		},
	}, {
		ID: "PO-VERDICT-4", Name: "every-verb", Level: framework.Must,
		Title:  "POST, PUT, each type of patch and apply get the same decision, and a dry run the same as another request.",
		Why:    "A policy that reads request.options or request.dryRun is off for some clients.",
		Fix:    "Judge the object, and not the options of the request.",
		Source: []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"},
		Check: func(t *T) {
			t.must(t.handles(admissionregistrationv1.Create) || t.handles(admissionregistrationv1.Update), "no policy has CREATE or UPDATE in its operations")
			for _, c := range t.each(Verbs) {
				if !c.Control.Accepted() || !t.says(c) {
					continue
				}
				if c.Control.Request.Verb == framework.VerbUpdate && len(vary.Differences(c.Before.Fields(), c.Control.Before.Fields())) > 0 {
					continue // an apply, and a patch that merges, do not remove everything that an update removes
				}
				if len(c.Errors())+len(c.Control.Errors()) > 0 {
					t.evaluated(c.Control)
				} else {
					t.differ(c)
				}
			}
		},
	}}
}

// needBad ends the check if no bad object has a fix: the rule needs a defect.
func (t *T) needBad() {
	t.must(slices.ContainsFunc(t.Bad, func(b Bad) bool { return b.Fix != nil }), "no bad object has a fix, so its defect is not known")
	t.must(slices.ContainsFunc(t.Bad, func(b Bad) bool { return len(b.Defect()) > 0 }), "bad objects differ from their fixes only by their names")
}
