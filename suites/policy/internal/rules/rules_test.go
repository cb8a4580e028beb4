package rules_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/suites/policy/internal/check"
	"github.com/admissiontest/admissiontest/suites/policy/internal/rules"
)

// judge checks a rule with given responses.
func judge(t *testing.T, id string, subject check.Subject, observed check.Observations) rule.Outcome {
	t.Helper()
	for _, each := range rules.All() {
		if each.ID == id {
			checked := &rules.T{T: rule.NewT(rule.Names{Suite: "policy", Unreached: "not reached"}), Subject: subject, Observations: &observed}
			return checked.Run(each.Rule(), false, time.Minute, func() { each.Check(checked) })
		}
	}
	t.Fatalf("there is no rule %s", id)
	return rule.Outcome{}
}

func allowed(warnings ...string) *check.Case {
	ok := framework.Result{Status: metav1.Status{Code: 201, Status: metav1.StatusSuccess}, Warnings: warnings}
	return &check.Case{Group: check.Samples, What: "create good[0]", Good: 0, Bad: -1, Before: ok, After: ok}
}

// An error that may not have been seen is not a pass.
func TestNotSeen(t *testing.T) {
	for name, test := range map[string]struct {
		observed check.Observations
		want     framework.Verdict
		reason   string
	}{
		"seen":                     {check.Observations{Cases: []*check.Case{allowed("one")}}, framework.Pass, ""},
		"an error":                 {check.Observations{Cases: []*check.Case{allowed("expression 'a' resulted in error: no such key: b")}}, framework.Fail, "no such key: b"},
		"cut warnings":             {check.Observations{Cases: []*check.Case{allowed(strings.Repeat("long ", 800))}}, framework.Inconclusive, "more than 4096 characters"},
		"an error among them":      {check.Observations{Cases: []*check.Case{allowed(strings.Repeat("long ", 800), "it resulted in error: x")}}, framework.Fail, "resulted in error"},
		"fields that are left out": {check.Observations{NotSent: 2, Cases: []*check.Case{allowed()}}, framework.Inconclusive, "2 fields of samples"},
		"nothing":                  {check.Observations{}, framework.Inconclusive, "not reached"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, "PO-ERR-1", check.Subject{}, test.observed)
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%s: %s; want %s: %s", got.Verdict, got.Reason, test.want, test.reason)
			}
		})
	}
}

// Of two orders, a refusal in one is a difference, and the order of a list of objects is none.
func TestOrders(t *testing.T) {
	var two check.Subject
	for _, name := range []string{"a", "b"} {
		for kind, spec := range map[string]any{"MutatingAdmissionPolicy": nil, "MutatingAdmissionPolicyBinding": map[string]any{"policyName": name}} {
			object := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
			two.Policies = append(two.Policies, shipped.Manifest{Object: object})
		}
	}
	made := func(list ...any) *check.Case {
		c := allowed()
		c.Group, c.After.Object = check.Orders, &unstructured.Unstructured{Object: map[string]any{"list": list}}
		return c
	}
	one, other := map[string]any{"name": "one"}, map[string]any{"name": "other"}
	refused := made()
	refused.After.Status = metav1.Status{Code: 403, Status: metav1.StatusFailure, Message: "no"}
	for name, test := range map[string]struct {
		first, second *check.Case
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
			if got := judge(t, "PO-MUT-2", two, check.Observations{Cases: []*check.Case{&c}}); got.Verdict != test.want {
				t.Errorf("%s: %s; want %s", got.Verdict, got.Reason, test.want)
			}
		})
	}
}
