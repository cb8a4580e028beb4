package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// Rule is one rule for webhooks, with the function that checks it.
type Rule = rule.Definition[*T]

// T is the check of one rule for one webhook.
type T struct {
	*rule.T
	*Prepared
	*Webhook
	raised bool
}

// Raise makes a SHOULD a MUST for this webhook.
func (t *T) Raise() { t.raised = true }

// Errorf records how the webhook breaks the rule. It does nothing when the budget is used up: then calls end because their context
// does.
func (t *T) Errorf(format string, args ...any) {
	if !t.Over() {
		t.T.Errorf(format, args...)
	}
}

// Differs is Errorf for an answer that differs from the answer to another request. If the webhook gives different answers to the same
// request, the difference shows nothing: then it records that the rule cannot be judged. Nothing else may call the webhook meanwhile.
func (t *T) Differs(format string, args ...any) {
	if c := t.varying(); c != "" {
		t.Unobserved("%s: the webhook gives different answers to the same request, so answers cannot be compared: see WH-IDEM-4", c)
		return
	}
	t.Errorf(format, args...)
}

// varying returns a case to which the webhook gives different answers. Empty means that there is none. The cases are sent once for all rules.
func (t *T) varying() string {
	const times = 20 // as WH-IDEM-4
	t.comparing.Lock()
	defer t.comparing.Unlock()
	if t.varies != nil {
		return *t.varies
	}
	found := ""
	t.EachDecided(func(c Case, want Decision) {
		for n := 0; n < times && found == ""; n++ {
			if got, ok := t.Decide(c.Request); ok && t.Difference(want, got) != "" {
				found = c.String()
			}
		}
	})
	if found != "" || !t.Over() {
		t.varies = &found
	}
	return found
}

// callLimit is how long one call may take, unless the timeout of the webhook is longer. Rule WH-PERF-1 is about shorter
// timeouts.
const callLimit = 3 * time.Second

// Check checks a rule for a webhook.
func (p *Prepared) Check(definition Rule, w *Webhook, budget time.Duration) rule.Outcome {
	names := rule.Names{Suite: "webhook", Subject: "the webhook", Unreached: "no sample reaches what this rule is about"}
	for _, cases := range [][]Case{w.Allow, w.Reject} {
		for _, each := range cases {
			names.Requests = append(names.Requests, each.String())
		}
	}
	t := &T{T: rule.NewT(names), Prepared: p, Webhook: w}
	outcome := t.Run(definition.Rule(), definition.Exclusive, budget, func() {
		if len(w.Allow)+len(w.Reject)+len(w.Uncalled) == 0 {
			if len(w.Unreached) > 0 {
				t.Unsupported("no sample reaches the webhook: %s", w.Unreached[0])
			}
			t.Unsupported("the Subject has no sample that can be read")
		}
		definition.Check(t)
	})
	if t.raised {
		outcome.Rule.Level = framework.Must
	}
	return outcome
}

// Encode encodes a review as JSON.
func Encode(body map[string]any) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		return []byte(err.Error()) // it has only JSON values
	}
	return data
}

// NewUID returns a new uid.
func NewUID() string { return string(uuid.NewUUID()) }

// Send sends the review of a request to a webhook, in the version that the webhook prefers.
func (p *Prepared) Send(ctx context.Context, w *Webhook, r reach.Request) Answer {
	return p.SendRaw(ctx, w, Raw{Body: bytes.NewReader(Encode(w.Review(r, w.Versions()[0])))})
}

// SendRaw sends an HTTP request to a webhook.
func (p *Prepared) SendRaw(ctx context.Context, w *Webhook, raw Raw) Answer {
	if raw.Limit == 0 {
		raw.Limit = max(w.Timeout(), callLimit)
	}
	return answerOf(p.endpoint.send(ctx, w.Path, p.authorized(w, raw)))
}

// authorized returns a call with a good token if the webhook wants one.
func (p *Prepared) authorized(w *Webhook, raw Raw) Raw {
	if p.Tokens != nil && raw.Authorization == nil {
		header := "Bearer " + p.Tokens.sign(p.Tokens.claims(w, "*")) // as kube-apiserver
		raw.Authorization = &header
	}
	return raw
}

// Post sends a body to the webhook.
func (t *T) Post(body []byte) Answer {
	return t.SendRaw(t.Context(), t.Webhook, Raw{Body: bytes.NewReader(body)})
}

// PostReview sends a review to the webhook.
func (t *T) PostReview(body map[string]any) Answer { return t.Post(Encode(body)) }

// Review returns the review of a request with a new uid, in the version that the webhook prefers.
func (t *T) Review(r reach.Request) map[string]any {
	return t.Webhook.Review(r, t.Versions()[0])
}

// Review returns the review of a request in a version, with a new uid, as the webhook gets it in its phase.
func (w *Webhook) Review(r reach.Request, version string) map[string]any {
	return review.Build(w.inPhase(r), "admission.k8s.io/"+version, NewUID())
}

// inPhase returns a request as the webhook gets it.
func (w *Webhook) inPhase(r reach.Request) reach.Request {
	if w.Kind == Validating {
		return review.Validated(r)
	}
	return r
}

// Called reports whether the webhook is called for a request. It logs why not.
func (t *T) Called(r reach.Request) bool {
	ok, why := t.Reaches(t.Context(), t.Webhook, r)
	if !ok {
		t.LogOnce(why)
	}
	return ok
}

// Decision is a decision of the webhook.
type Decision struct {
	Answer
	// Object is the object after the patch. For a denial it is the object of the request.
	Object map[string]any
}

// Decide sends a request to the webhook, whether or not its rules match. It returns false, and logs why, if the answer is no decision,
// or if its patch cannot be applied. Other rules report that.
func (t *T) Decide(r reach.Request) (Decision, bool) {
	return t.decided(Describe(r), t.inPhase(r).Object, t.Send(t.Context(), t.Webhook, r))
}

// DecideReview is Decide for a review.
func (t *T) DecideReview(body map[string]any) (Decision, bool) {
	request, _ := body["request"].(map[string]any)
	object, _ := request["object"].(map[string]any)
	return t.decided("the review", object, t.PostReview(body))
}

func (t *T) decided(what string, object map[string]any, a Answer) (Decision, bool) {
	if why := a.NoDecision(); why != "" {
		t.LogOnce(what + ": no decision: " + firstLine(why))
		return Decision{Answer: a}, false
	}
	d := Decision{a, object}
	if a.Response.Allowed && object != nil {
		changed, err := t.patched(object, a.Response.Patch)
		if err != nil {
			t.LogOnce(what + ": " + err.Error())
			return d, false
		}
		d.Object = changed
	}
	return d, true
}

func firstLine(text string) string {
	line, _, _ := bytes.Cut([]byte(text), []byte("\n"))
	return string(line)
}

// EachAllowed calls f for each sample of Allow that the webhook allows.
func (t *T) EachAllowed(f func(Case, Decision)) {
	t.eachDecided(t.Webhook.Allow, func(d Decision) bool { return d.Response.Allowed }, f)
}

// EachDenied calls f for each sample of Reject that the webhook denies.
func (t *T) EachDenied(f func(Case, Decision)) {
	t.eachDecided(t.Webhook.Reject, func(d Decision) bool { return !d.Response.Allowed }, f)
}

// EachDecided calls f for each sample about which the webhook decides.
func (t *T) EachDecided(f func(Case, Decision)) {
	t.eachDecided(t.Cases(), func(Decision) bool { return true }, f)
}

func (t *T) eachDecided(cases []Case, counts func(Decision) bool, f func(Case, Decision)) {
	for _, c := range cases {
		if t.Over() {
			return
		}
		if d, ok := t.Decide(c.Request); ok && counts(d) {
			f(c, d)
		}
	}
}

// Cases returns all samples, first the samples of Allow.
func (t *T) Cases() []Case { return append(append([]Case{}, t.Webhook.Allow...), t.Webhook.Reject...) }

// SameVerdict reports whether both decisions are the same, without their messages.
func SameVerdict(a, b Decision) bool {
	return a.Response.Allowed == b.Response.Allowed && a.Response.Status.Code == b.Response.Status.Code && a.Response.Status.Reason == b.Response.Status.Reason
}

// Difference returns how a decision or its object differs from the expected one. Empty means that it does not.
func (t *T) Difference(want, got Decision) string {
	if !SameVerdict(want, got) {
		return fmt.Sprintf("got %s, want %s", got.Verdict(), want.Verdict())
	}
	return t.DiffObjects(want.Object, got.Object)
}

// DiffObjects returns how two objects differ in their meaning: after decoding, without empty and volatile fields, and
// without managedFields.
func (t *T) DiffObjects(want, got map[string]any) string {
	a, errA := t.Canonical(want)
	b, errB := t.Canonical(got)
	switch {
	case errA != nil:
		return ""
	case errB != nil:
		return "the object cannot be decoded: " + errB.Error()
	}
	if diff := cmp.Diff(a, b); diff != "" {
		return "the object differs (- want, + got):\n" + diff
	}
	return ""
}

// EachReplica calls f with the decision of each other replica about a request.
func (t *T) EachReplica(r reach.Request, f func(address string, d Decision)) {
	for _, replica := range t.replicas {
		body := Encode(t.Review(r))
		a := answerOf(replica.send(t.Context(), t.Path, t.authorized(t.Webhook, Raw{Body: bytes.NewReader(body), Limit: max(t.Timeout(), callLimit)})))
		if d, ok := t.decided(replica.base.String(), t.inPhase(r).Object, a); ok {
			f(replica.base.String(), d)
		} else {
			t.Unobserved("%s at %s: %s", Describe(r), replica.base, d.Verdict())
		}
	}
}

// HasPath reports whether the webhook is at a path: a Handler for a single webhook can be called with any path, and a server
// whose webhook is at / gets every path.
func (t *T) HasPath() bool {
	path := t.Path
	if base := t.endpoint.base; base != nil && base.Path != "" && base.Path != "/" {
		path = base.Path
	}
	return path != "/" && (t.URL != "" || slices.ContainsFunc(t.Webhooks, func(w *Webhook) bool { return w.Path != t.Path }))
}

// DecideBody is Decide for the encoded review of a case.
func (t *T) DecideBody(c Case, body []byte) (Decision, bool) {
	return t.decided(c.String(), t.inPhase(c.Request).Object, t.Post(body))
}

// AllowedBefore reports whether a webhook of the Subject allows a case itself, or is not called for it.
func (t *T) AllowedBefore(w *Webhook, c Case) bool {
	if ok, _ := t.Reaches(t.Context(), w, c.Request); !ok {
		return true
	}
	a := t.Send(t.Context(), w, c.Request)
	return a.NoDecision() == "" && a.Response.Allowed
}

// Fixed returns the object of the sample of a case with its Fix, before mutating webhooks, or nil if it has none. It is the old object of
// a deletion.
func (t *T) Fixed(c Case) (map[string]any, error) {
	if len(c.Fix) == 0 {
		return nil, nil
	}
	if c.Sample.Operation == review.OpDelete {
		return t.patched(c.Sample.OldObject, c.Fix)
	}
	return t.patched(c.Sample.Object, c.Fix)
}
