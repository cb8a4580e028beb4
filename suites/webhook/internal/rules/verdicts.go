package rules

import (
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// verdictRules returns the rules for verdicts and their messages.
func verdictRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-VERDICT-1", Name: "samples-get-their-verdict", Level: framework.Must,
			Title:  "Each sample of Allow is allowed. Each sample of Reject is denied, by one of the webhooks, with its Message, and allowed with its Fix.",
			Why:    "A denial for another reason than the intended one hides that the intended check does not work.",
			Fix:    "Change the webhook, or the sample.",
			Source: []string{"https://github.com/kubernetes-sigs/gateway-api/issues/1007"},
			Check:  checkSamples,
		},
		{
			ID: "WH-VERDICT-2", Name: "denials-explain-themselves", Level: framework.Should,
			Title:  "A denial has a message, and a code from 400 to 499 or none.",
			Why:    "The client reads \"denied the request without explanation\", or takes a decision for a failure and tries again.",
			Fix:    "Set status.message to what is wrong and what is allowed, and status.code to 403 or 422.",
			Source: []string{"https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go", "https://github.com/openshift/hive/pull/1361"},
			Check:  checkExplains,
		},
		{
			ID: "WH-VERDICT-3", Name: "failures-are-not-denials", Level: framework.Must,
			Title:  "For a well-formed review, no denial has a code of 500 or more, a recovered panic, a stack or the error of a decoder.",
			Why:    "A failure of the webhook looks like a decision about the object, and failurePolicy does not apply to it.",
			Fix:    "Find the panic or error. If the webhook cannot decide, answer with an HTTP status of 500.",
			Source: []string{"https://github.com/clastix/kamaji/issues/744", "https://github.com/rook/rook/issues/10222"},
			Check:  checkOwnFailures,
		},
	}
}

func checkSamples(t *check.T) {
	for _, each := range t.Uncalled {
		if each.Unknown {
			t.Unobserved("%s: whether a webhook is called for the sample of Reject is not known: %s", each.What, each.Why)
			continue
		}
		t.Errorf("%s: the sample is in Reject, and no webhook is called for it, so it is allowed: %s", each.What, each.Why)
	}
	for _, c := range t.Webhook.Allow {
		if d, ok := t.Decide(c.Request); ok {
			t.Reached()
			if !d.Response.Allowed && ownFailure(d) == "" {
				t.Errorf("%s: the sample is in Allow, and is %s", c, d.Verdict())
			}
		}
	}
	for _, c := range t.Webhook.Reject {
		d, ok := t.Decide(c.Request)
		if !ok {
			continue
		}
		if d.Response.Allowed {
			if !deniedByOther(t, c) {
				t.Reached()
				t.Errorf("%s: the sample is in Reject, and is allowed", c)
			}
			continue
		}
		t.Reached()
		if message := d.Response.Status.Message; message != "" && ownFailure(d) == "" && !strings.Contains(message, c.Message) {
			t.Errorf("%s: the message of the denial is %q, want %q in it", c, message, c.Message)
		}
		checkFix(t, c)
	}
}

func checkFix(t *check.T, c check.Case) {
	fixed, err := t.Fixed(c)
	if err != nil {
		t.Incomplete("%s: apply its Fix: %v", c, err)
		return
	}
	if fixed == nil {
		return
	}
	r := withObject(c.Sample, fixed)
	if r.Operation == review.OpDelete {
		r.Object, r.OldObject = nil, fixed
	}
	if d, ok := t.Decide(t.AfterMutation(r)); ok && !d.Response.Allowed {
		t.Errorf("%s: with its Fix, the sample is still %s", c, d.Verdict())
	}
}

// deniedByOther reports whether another webhook of the Subject denies a case, or could not decide. A mutating webhook leaves that to
// validating ones.
func deniedByOther(t *check.T, c check.Case) bool {
	for _, w := range t.Webhooks {
		if w == t.Webhook {
			continue
		}
		for _, other := range w.Reject {
			if sameObject(other.Request, c.Request) {
				if t.Kind == check.Mutating && w.Kind == check.Validating {
					return true
				}
				if a := t.Send(t.Context(), w, other.Request); a.NoDecision() != "" || !a.Response.Allowed {
					return true
				}
			}
		}
	}
	return false
}

func sameObject(a, b reach.Request) bool {
	return a.Operation == b.Operation && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Namespace == b.Namespace && a.Name == b.Name
}

// needDenial ends the check as unsupported if the webhook denied no sample.
func needDenial(t *check.T) {
	if len(t.Webhook.Reject) == 0 {
		t.Unsupported("no sample of Reject reaches the webhook")
	}
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("this webhook denies no sample of Reject")
	}
}

func checkExplains(t *check.T) {
	t.EachDenied(func(c check.Case, d check.Decision) {
		t.Reached()
		status := d.Response.Status
		if strings.TrimSpace(status.Message) == "" {
			t.Errorf("%s: the denial has no message", c)
		}
		if status.Code != 0 && (status.Code < 400 || status.Code >= 500) && ownFailure(d) == "" {
			t.Errorf("%s: the denial has code %d, want 400 to 499, or none", c, status.Code)
		}
	})
	needDenial(t)
}

func checkOwnFailures(t *check.T) {
	for _, c := range t.Cases() {
		requests := []reach.Request{c.Request}
		if isCreate(c) {
			requests = append(requests, updateOf(c.Request, c.Request.Object, nil))
		}
		for _, r := range requests {
			if !t.Called(r) {
				continue
			}
			d, ok := t.Decide(r)
			if !ok {
				continue
			}
			t.Reached()
			if why := ownFailure(d); why != "" {
				t.Errorf("%s: the denial is a failure of the webhook: %s", check.Describe(r), d.Verdict())
			}
		}
	}
}
