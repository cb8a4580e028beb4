package rules

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

// judge checks a rule with given responses.
func judge(t *testing.T, id string, subject Subject, observed Observations) rule.Outcome {
	t.Helper()
	for _, each := range All() {
		if each.ID == id {
			checked := &T{T: rule.NewT(rule.Names{Suite: "policy", Unreached: "not reached"}), Subject: subject, Observations: &observed}
			return checked.Run(each.Rule(), false, time.Minute, func() { each.Check(checked) })
		}
	}
	t.Fatalf("there is no rule %s", id)
	return rule.Outcome{}
}

func allowed(warnings ...string) *Case {
	ok := framework.Result{Status: metav1.Status{Code: 201, Status: metav1.StatusSuccess}, Warnings: warnings}
	return &Case{Group: Samples, What: "create good[0]", Good: 0, Bad: -1, Before: ok, After: ok}
}

// An error that may not have been seen is not a pass.
func TestNotSeen(t *testing.T) {
	for name, test := range map[string]struct {
		observed Observations
		want     framework.Verdict
		reason   string
	}{
		"seen":                {Observations{Cases: []*Case{allowed("'" + probePrefix + "a': " + evaluatedMark)}}, framework.Pass, ""},
		"an error":            {Observations{Cases: []*Case{allowed("expression 'a' resulted in error: no such key: b")}}, framework.Fail, "no such key: b"},
		"cut warnings":        {Observations{Cases: []*Case{allowed(strings.Repeat("long ", 800))}}, framework.Inconclusive, "more than 4096 characters"},
		"an error among them": {Observations{Cases: []*Case{allowed(strings.Repeat("long ", 800), "it resulted in error: x")}}, framework.Fail, "resulted in error"},
		"nothing":             {Observations{}, framework.Inconclusive, "not reached"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, "PO-ERR-1", Subject{}, test.observed)
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%s: %s; want %s: %s", got.Verdict, got.Reason, test.want, test.reason)
			}
		})
	}
}

// Of two orders, a refusal in one is a difference, and the order of a list of objects is none.
func TestOrders(t *testing.T) {
	var two Subject
	for _, name := range []string{"a", "b"} {
		for kind, spec := range map[string]any{"MutatingAdmissionPolicy": nil, "MutatingAdmissionPolicyBinding": map[string]any{"policyName": name}} {
			object := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
			two.Policies = append(two.Policies, shipped.Manifest{Object: object})
		}
	}
	made := func(list ...any) *Case {
		c := allowed()
		c.Group, c.After.Object = Orders, &unstructured.Unstructured{Object: map[string]any{"list": list}}
		return c
	}
	one, other := map[string]any{"name": "one"}, map[string]any{"name": "other"}
	refused := made()
	refused.After.Status = metav1.Status{Code: 403, Status: metav1.StatusFailure, Message: "no"}
	for name, test := range map[string]struct {
		first, second *Case
		want          framework.Verdict
	}{
		"objects in another order": {made(one, other), made(other, one), framework.Pass},
		"texts in another order":   {made("one", "other"), made("other", "one"), framework.Fail},
		"another object":           {made(one), made(one, other), framework.Fail},
		"refused in one order":     {made(one), refused, framework.Fail},
		"refused in both orders":   {refused, refused, framework.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			c := *test.first
			c.Control = test.second
			observed := Observations{Cases: []*Case{&c, made("changed")}}
			observed.Cases[1].Group = Samples // a MutatingAdmissionPolicy that changes nothing is no pass
			if got := judge(t, "PO-MUT-2", two, observed); got.Verdict != test.want {
				t.Errorf("%s: %s; want %s", got.Verdict, got.Reason, test.want)
			}
		})
	}
}

// What something else refuses, without the name of a policy, says nothing about the policies.
func TestRefusedBySomethingElse(t *testing.T) {
	const taken, denied = "the port is already allocated", "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no"
	subject := Subject{Bad: []Bad{{Sample: Sample{Object: map[string]any{"a": "b"}}, Fix: map[string]any{"a": "c"}, Denied: "no"}}}
	of := func(group Group, good, bad int, refusal string) *Case {
		c := allowed("expression 'a' resulted in error: x")
		c.Group, c.Good, c.Bad, c.Control = group, good, bad, allowed()
		if refusal != "" {
			c.After = framework.Result{Status: metav1.Status{Code: 422, Status: metav1.StatusFailure, Message: refusal}}
		}
		return c
	}
	good, bad := of(Samples, 0, -1, ""), of(Samples, -1, 0, denied)
	for name, test := range map[string]struct {
		rule   string
		cases  []*Case
		want   framework.Verdict
		reason string
	}{
		"good":              {"PO-VERDICT-1", []*Case{of(Samples, 0, -1, taken)}, framework.Inconclusive, "refused by something else: " + taken},
		"good, by a policy": {"PO-VERDICT-1", []*Case{of(Samples, 0, -1, denied)}, framework.Fail, "want allowed"},
		"bad":               {"PO-VERDICT-1", []*Case{of(Samples, -1, 0, taken)}, framework.Inconclusive, "refused by something else: " + taken},
		"an update":         {"PO-DOOR-1", []*Case{bad, of(Violations, -1, 0, taken)}, framework.Inconclusive, "refused by something else: " + taken},
		"an update, denied": {"PO-DOOR-1", []*Case{bad, of(Violations, -1, 0, denied)}, framework.Pass, ""},
		"another form":      {"PO-VERDICT-2", []*Case{good, of(Forms, 0, -1, taken)}, framework.Inconclusive, "refused by something else: " + taken},
		"no name":           {"PO-DOOR-6", []*Case{good, of(Generated, 0, -1, taken)}, framework.Inconclusive, "refused by something else: " + taken},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, test.rule, subject, Observations{Cases: test.cases})
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%s: %s; want %s: %s", got.Verdict, got.Reason, test.want, test.reason)
			}
		})
	}
}

// The API server itself decides about updates only if it refuses all of them as invalid.
func TestInvalidUpdates(t *testing.T) {
	subject := Subject{Bad: []Bad{{Sample: Sample{Object: map[string]any{"a": "b"}}, Fix: map[string]any{"a": "c"}, Denied: "no"}}}
	refusal := func(c *Case, group Group, reason metav1.StatusReason) *Case {
		c.Group, c.Good, c.Bad = group, -1, 0
		if reason != "" {
			c.Before.Status = metav1.Status{Code: 422, Status: metav1.StatusFailure, Reason: reason, Message: "the field cannot change\nand more"}
		}
		return c
	}
	update := func(reason metav1.StatusReason) *Case { return refusal(allowed(), Violations, reason) }
	noDefect := update("")
	noDefect.needs = []need{refused(allowed())}
	for name, test := range map[string]struct {
		updates []*Case
		want    framework.Verdict
		reason  string
	}{
		"invalid":                     {[]*Case{update(metav1.StatusReasonInvalid), update(metav1.StatusReasonInvalid)}, framework.Unsupported, "bad: the field cannot change"},
		"invalid, and what is good":   {[]*Case{update(metav1.StatusReasonInvalid), noDefect}, framework.Unsupported, "bad: the field cannot change"},
		"forbidden":                   {[]*Case{update(metav1.StatusReasonInvalid), update(metav1.StatusReasonForbidden)}, framework.Inconclusive, "not accepted without the policies"},
		"invalid, and one is allowed": {[]*Case{update(metav1.StatusReasonInvalid), update("")}, framework.Fail, "want a refusal"},
		"what is good":                {[]*Case{noDefect}, framework.Inconclusive, "the policies do not refuse"},
		"none":                        {nil, framework.Inconclusive, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bad := refusal(allowed(), Samples, "")
			bad.After.Status = metav1.Status{Code: 422, Status: metav1.StatusFailure, Message: "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no"}
			got := judge(t, "PO-DOOR-1", subject, Observations{Cases: append(test.updates, bad)})
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.reason) || strings.Contains(got.Reason, "and more") && test.want == framework.Unsupported {
				t.Errorf("%s: %s; want %s: %s", got.Verdict, got.Reason, test.want, test.reason)
			}
		})
	}
}

// A copy that is refused for its name says nothing. One whose sample is refused too is not refused for that.
func TestCopies(t *testing.T) {
	validating := Subject{Policies: []shipped.Manifest{{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "a"},
	}}}}
	for name, sample := range map[string]*Case{"allowed": allowed(), "refused": allowed()} {
		t.Run(name, func(t *testing.T) {
			renamed, copied := allowed(), allowed()
			renamed.Group, copied.Group = Renamed, Unrelated
			refused, want := []*Case{renamed, copied}, framework.Inconclusive
			if name == "refused" {
				refused, want = append(refused, sample), framework.Fail
			}
			for _, c := range refused {
				c.After.Status = metav1.Status{Code: 403, Status: metav1.StatusFailure, Message: "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no"}
			}
			got := judge(t, "PO-LIFE-1", validating, Observations{Cases: []*Case{sample, renamed, copied}})
			if got.Verdict != want {
				t.Errorf("%s: %s; want %s", got.Verdict, got.Reason, want)
			}
		})
	}
}
