package rules_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// unordered is sound, and refuses with a message that has the entries of a map in random order.
func unordered(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.Validate(ctx, a, o); !apierrors.IsForbidden(err) {
		return err
	}
	var reasons []string
	for reason := range map[string]bool{"one": true, "another": true} {
		reasons = append(reasons, reason)
	}
	return admission.NewForbidden(a, errors.New(strings.Join(reasons, " and ")))
}

// TestVerdictsDoNotVary: messages in random order break refusal-messages-are-stable (E3) each
// time, and no other rule at any time.
func TestVerdictsDoNotVary(t *testing.T) {
	subject := mutant{build: inValidate(unordered)}.of()
	for range 10 {
		outcomes, misuse := checkRules(subject)
		if len(misuse) > 0 {
			t.Fatal(misuse)
		}
		for _, outcome := range outcomes {
			want := framework.Pass
			if outcome.Rule.ID == "E3" {
				want = framework.Fail
			}
			if outcome.Verdict != want {
				t.Errorf("%s: got %s, want %s: %s", outcome.Rule, outcome.Verdict, want, outcome.Reason)
			}
		}
	}
}

// keepsUser keeps the user of a request in a field until Validate has read the object.
type keepsUser struct {
	*sound
	mu   sync.Mutex
	name string
}

func (p *keepsUser) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetUserInfo() == nil {
		return p.sound.Validate(ctx, a, o)
	}
	p.mu.Lock()
	p.name = a.GetUserInfo().GetName()
	p.mu.Unlock()
	pod, _ := a.GetObject().(*corev1.Pod)
	p.mu.Lock()
	name := p.name
	p.mu.Unlock()
	if pod != nil && name == "mallory" {
		return admission.NewForbidden(a, errors.New("not for mallory"))
	}
	return p.sound.Validate(ctx, a, o)
}

// TestRacesAreFound: a plugin that mixes up requests for the time of one line fails each time.
func TestRacesAreFound(t *testing.T) {
	subject := mutant{build: func(p *sound) admission.Interface { return &keepsUser{sound: p} }}.of()
	for range 20 {
		outcomes, _ := checkRules(subject, "T1")
		if outcomes[0].Verdict != framework.Fail {
			t.Errorf("got %s, want fail: %s", outcomes[0].Verdict, outcomes[0].Reason)
		}
	}
}

// TestDeclaredRefusals: the reason, the field and the text of a refusal can be required.
func TestDeclaredRefusals(t *testing.T) {
	subject := mutant{build: same}.of()
	request := subject.Reject[0]
	for name, test := range map[string]struct {
		refusal check.Refusal
		says    string
	}{
		"right":          {check.Refusal{Reason: "Forbidden", Text: "the pod is forbidden"}, ""},
		"another reason": {check.Refusal{Reason: "Invalid"}, "want reason Invalid"},
		"another field":  {check.Refusal{Field: "spec.replicas"}, `want one for "spec.replicas"`},
		"another text":   {check.Refusal{Text: "too large"}, `want "too large" in the message`},
		"admitted":       {check.Refusal{Request: subject.Allow[0]}, "got admitted"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.refusal.Request.Verb == "" {
				test.refusal.Request = request
			}
			subject.RejectWith = []check.Refusal{test.refusal}
			outcomes, _ := checkRules(subject, "G1")
			want := framework.Pass
			if test.says != "" {
				want = framework.Fail
			}
			if got := outcomes[0]; got.Verdict != want || !strings.Contains(got.Reason, test.says) {
				t.Errorf("got %s, want %s with %q: %s", got.Verdict, want, test.says, got.Reason)
			}
		})
	}
}

// TestStrictAndFlaky: Strict fails a rule without a verdict, which a waiver allows. A flaky
// waiver accepts both a broken rule and one that holds.
func TestStrictAndFlaky(t *testing.T) {
	subject := mutant{build: same}.of()
	unreached := subject
	unreached.Allow, unreached.Reject = unreached.Allow[:1], nil
	for name, test := range map[string]struct {
		subject check.Subject
		rule    string
		strict  bool
		waivers []rule.Waiver
		want    framework.Verdict
	}{
		"inconclusive":         {unreached, "O2", false, nil, framework.Inconclusive},
		"strict":               {unreached, "O2", true, nil, framework.Fail},
		"strict and waived":    {unreached, "O2", true, []rule.Waiver{{Rule: "O2", Why: "a test"}}, framework.Skipped},
		"incomplete":           {unreached, "G2", false, nil, framework.Errored},
		"incomplete, waived":   {unreached, "G2", false, []rule.Waiver{{Rule: "G2", Why: "a test"}}, framework.Skipped},
		"holds, waived":        {subject, "V1", false, []rule.Waiver{{Rule: "V1", Why: "a test"}}, framework.Fail},
		"holds, flaky":         {subject, "V1", false, []rule.Waiver{{Rule: "V1", Why: "a test", Flaky: true}}, framework.Pass},
		"incomplete and flaky": {unreached, "G2", false, []rule.Waiver{{Rule: "G2", Why: "a test", Flaky: true}}, framework.Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			plan := check.NewPlan(test.subject, rules.All(), rule.Options{Only: []string{test.rule}, Strict: test.strict, Waivers: test.waivers})
			if got := plan.Check(plan.Rules()[0]); got.Verdict != test.want || (got.Reason == rule.NotBroken) != (name == "holds, waived") {
				t.Errorf("got %s, want %s: %s", got.Verdict, test.want, got.Reason)
			}
		})
	}
}

// seldomReady labels pods, also in updates, and refuses one of two requests at first.
type seldomReady struct {
	*sound
	requests *atomic.Int64
}

func (p seldomReady) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok {
		if p.requests.Add(1)%2 == 1 {
			return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
		}
		pod.Labels = withKey(pod.Labels, "ready", "true")
	}
	return p.sound.Admit(ctx, a, o)
}

// TestNotReady: deleting-objects-can-be-updated (Y1) does not take an object for admitted that a
// plugin has refused because it was not ready.
func TestNotReady(t *testing.T) {
	var requests atomic.Int64
	subject := mutant{build: func(p *sound) admission.Interface { return seldomReady{p, &requests} }}.of()
	subject.Allow = subject.Allow[:1]
	outcomes, _ := checkRules(subject, "Y1")
	if got := outcomes[0]; got.Verdict != framework.Inconclusive || !strings.Contains(got.Reason, "it was not admitted") {
		t.Errorf("got %s, want inconclusive: %s", got.Verdict, got.Reason)
	}
}
