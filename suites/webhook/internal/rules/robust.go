package rules

import (
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// robustRules returns the rules for reviews that are malformed, large or from a newer server.
func robustRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-ROBUST-1", Name: "malformed-reviews-are-refused", Level: framework.Must,
			Title:  "A malformed review is refused, a review without optional parts gets its normal verdict, and the webhook serves on.",
			Why:    "Whatever reaches the port can end the process otherwise, and then no request that needs the webhook succeeds.",
			Fix:    "Check that request is not nil, and do not depend on optional fields.",
			Source: []string{"https://github.com/kyverno/kyverno/pull/15251", "https://github.com/kubeedge/kubeedge/pull/7254"},
			Check:  checkMalformed,
		},
		{
			ID: "WH-ROBUST-2", Name: "bodies-are-limited", Level: framework.Must,
			Title:  "A body of 64 MiB is refused before all of it was read.",
			Why:    "A few such bodies use up the memory of the webhook. A review has at most two objects of 3 MiB.",
			Fix:    "Read the body through http.MaxBytesReader with a limit of about 7 MiB.",
			Source: []string{"https://github.com/kubernetes-sigs/controller-runtime/pull/2598", "https://github.com/dapr/dapr/pull/10311"},
			Check:  checkLargeBody,
		},
		{
			ID: "WH-ROBUST-3", Name: "newer-servers-do-not-break-it", Level: framework.Must,
			Title:  "Unknown fields of the review, and an unknown field of the object, do not change the verdict. An unknown operation gets an answer.",
			Why:    "A strict decoder fails for each request as soon as the API server is newer than the webhook.",
			Fix:    "Decode leniently.",
			Source: []string{goodPractices},
			Check:  checkNewer,
		},
	}
}

// malformed are bodies that are no review.
func malformed() map[string]string {
	return map[string]string{
		"an empty body": "", "{}": "{}", "null": "null", "[]": "[]", "cut JSON": `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"`,
		"a review without request": `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"a Pod":                    `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
	}
}

func checkMalformed(t *check.T) {
	var good *check.Case
	var want check.Decision
	eachObject(t, func(c check.Case, d check.Decision) {
		if good == nil {
			good, want = &c, d
		}
	})
	if good == nil {
		return
	}
	alive := func(after string) {
		if d, ok := t.Decide(good.Request); !ok || !sameAllowed(want, d) {
			t.Errorf("%s after %s: got %s, want %s", good, after, d.Verdict(), want.Verdict())
		}
	}
	bodies := malformed()
	for _, what := range slices.Sorted(maps.Keys(bodies)) {
		a := t.Post([]byte(bodies[what]))
		t.Reached()
		switch {
		case a.Err != nil:
			t.Errorf("%s: got %s; want an answer with status 4xx or 5xx, or allowed: false", what, a.Err)
		case a.Problem == "" && a.Response.Allowed && t.Kind == check.Validating:
			t.Errorf("%s: allowed", what)
		}
		alive(what)
	}
	for _, field := range []string{"requestKind", "requestResource", "options", "dryRun"} {
		body := t.Review(good.Request)
		request, _ := body["request"].(map[string]any)
		delete(request, field)
		a := t.PostReview(body)
		if a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
			t.Errorf("%s without request.%s: got %s, want %s", good, field, a.Verdict(), want.Verdict())
		}
	}
}

// sameAllowed reports whether both decisions allow, or both deny.
func sameAllowed(a, b check.Decision) bool { return a.Response.Allowed == b.Response.Allowed }

// endless is a JSON string of a size, which counts what was read of it.
type endless struct {
	size int64
	read atomic.Int64
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	left := e.size - e.read.Load()
	if left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	for i := range p {
		p[i] = 'a'
	}
	if e.read.Load() == 0 {
		copy(p, `{"apiVersion":"`)
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func checkLargeBody(t *check.T) {
	const size = 64 << 20
	body := &endless{size: size}
	a := t.SendRaw(t.Context(), t.Webhook, check.Raw{Body: io.NopCloser(body)})
	if read := body.read.Load(); read < size && a.NoDecision() == "" && a.Response.Allowed {
		t.Errorf("a body of 64 MiB is allowed")
	} else if read >= size {
		t.Errorf("the webhook read all of a body of 64 MiB; want a limit of about 7 MiB")
	}
	if a.Err == nil || t.URL != "" && body.read.Load() > 0 { // a server can close the connection
		t.Reached()
	} else {
		t.LogOnce(a.Err.Error())
	}
}

func checkNewer(t *check.T) {
	for _, c := range t.Cases() {
		want, ok := t.Decide(c.Request)
		if !ok {
			continue
		}
		t.Reached()
		body := t.Review(c.Request)
		request, _ := body["request"].(map[string]any)
		user, _ := request["userInfo"].(map[string]any)
		for _, fields := range []map[string]any{body, request, user} {
			fields["contractFuture"] = map[string]any{"a": int64(1)}
		}
		if a := t.PostReview(body); a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
			t.Errorf("%s with unknown fields in the review: got %s, want %s", c, a.Verdict(), want.Verdict())
		}
		if isCreate(c) {
			object := changed(c.Request.Object, func(u *unstructured.Unstructured) { u.Object["contractFuture"] = map[string]any{"a": int64(1)} })
			if a := t.Send(t.Context(), t.Webhook, withObject(c.Request, object)); a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
				t.Errorf("%s with an unknown field in the object: got %s, want %s", c, a.Verdict(), want.Verdict())
			}
		}
		future := c.Request
		future.Operation = "FUTURE"
		if a := t.Send(t.Context(), t.Webhook, future); a.Err != nil {
			t.Errorf("%s as operation FUTURE: %v; want an answer", c, a.Err)
		}
	}
}
