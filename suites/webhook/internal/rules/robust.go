package rules

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// robustRules returns the rules for reviews that are malformed, large or from a newer server.
func robustRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-ROBUST-1", Name: "malformed-reviews-are-refused", Level: framework.Must,
			Title:  "A malformed review is refused, a review without optional parts gets its normal verdict, one of a user with one group or none gets a verdict, and the webhook serves on. An object that is a string, or a version that does not exist, does not break it.",
			Why:    "Whatever reaches the port can end the process otherwise, and then no request that needs the webhook succeeds.",
			Fix:    "Check that request is not nil, and do not depend on optional fields.",
			Source: []string{"https://github.com/kyverno/kyverno/pull/15251", "https://github.com/kubeedge/kubeedge/pull/7254"},
			Check:  checkMalformed,
		},
		{
			ID: "WH-ROBUST-2", Name: "bodies-are-limited", Level: framework.Must,
			Title:  "A body of 64 MiB is refused before half of it was read. A client that sends its body slowly does not delay other calls.",
			Why:    "A few such bodies use up the memory of the webhook, and a few such clients stop it. A review has at most two objects of 3 MiB.",
			Fix:    "Read the body through http.MaxBytesReader with a limit of about 7 MiB, and hold no lock meanwhile.",
			Source: []string{"https://github.com/kubernetes-sigs/controller-runtime/pull/2598", "https://github.com/dapr/dapr/pull/10311"},
			Check:  checkLargeBody,
		},
		{
			ID: "WH-ROBUST-3", Name: "newer-servers-do-not-break-it", Level: framework.Must,
			Title:  "Unknown fields of the review, and an unknown field of the object, do not change the verdict. An unknown operation gets an answer, and an object of an unknown kind gets a verdict if the rules match every kind.",
			Why:    "A strict decoder fails for each request as soon as the API server is newer than the webhook.",
			Fix:    "Decode leniently, and allow kinds that the webhook does not know.",
			Source: []string{goodPractices},
			Check:  checkNewer,
		},
		{
			ID: "WH-ROBUST-4", Name: "large-reviews-are-decided", Level: framework.Should,
			Title:  "A review with objects of 3 MiB, the largest that an API server accepts, is decided.",
			Why:    "Objects that other clients may create are refused, or are not checked if failurePolicy is Ignore.",
			Fix:    "Accept bodies of up to 7 MiB, as controller-runtime does.",
			Source: []string{"https://github.com/kubernetes-sigs/controller-runtime/pull/2598", "https://github.com/kubernetes/autoscaler/pull/9690", "https://github.com/antrea-io/antrea/issues/8405"},
			Check:  checkLargeReview,
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
			t.Differs("%s after %s: got %s, want %s", good, after, d.Verdict(), want.Verdict())
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
	checkWrongParts(t, *good, alive)
	for _, field := range []string{"requestKind", "requestResource", "options", "dryRun"} {
		body := t.Review(good.Request)
		request, _ := body["request"].(map[string]any)
		delete(request, field)
		a := t.PostReview(body)
		if a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
			t.Differs("%s without request.%s: got %s, want %s", good, field, a.Verdict(), want.Verdict())
		}
	}
	checkGroups(t)
}

// checkGroups sends the samples as a user with one group, and with none. The verdict can depend on groups.
func checkGroups(t *check.T) {
	t.EachDecided(func(c check.Case, want check.Decision) {
		for _, groups := range [][]string{{"system:authenticated"}, nil} {
			r := c.Request
			r.User = framework.User{Name: "contract", Groups: groups}
			if ownFailure(want) != "" || !t.Called(r) { // WH-VERDICT-3
				continue
			}
			if d := (check.Decision{Answer: t.Send(t.Context(), t.Webhook, r)}); d.NoDecision() != "" || ownFailure(d) != "" {
				t.Errorf("%s by a user with the groups %q: got %s; want a decision", c, groups, d.Verdict())
			}
		}
	})
}

// checkWrongParts sends reviews with a version that does not exist, and with an object that is a string. The second must not
// be allowed instead of an object that the webhook denies. A webhook that does not look at the object can allow it.
func checkWrongParts(t *check.T, good check.Case, alive func(after string)) {
	newer := t.Review(good.Request)
	newer["apiVersion"] = "admission.k8s.io/v9"
	if a := t.PostReview(newer); a.Err != nil {
		t.Errorf("a review of version v9: got %s; want an answer", a.Err)
	}
	alive("a review of version v9")
	for _, c := range t.Cases() {
		if !isCreate(c) {
			continue
		}
		d, ok := t.Decide(c.Request)
		body := t.Review(c.Request)
		body["request"].(map[string]any)["object"] = "an object"
		switch a := t.PostReview(body); {
		case a.Err != nil:
			t.Errorf("%s with a string as object: got %s; want an answer", c, a.Err)
		case ok && !d.Response.Allowed && a.NoDecision() == "" && a.Response.Allowed:
			t.Errorf("%s with a string as object: allowed, but it is denied with its object", c)
		}
	}
	alive("a review with a string as object")
}

// sameAllowed reports whether both decisions allow, or both deny.
func sameAllowed(a, b check.Decision) bool { return a.Response.Allowed == b.Response.Allowed }

// endless is a JSON string of largeBody bytes. Before the second half, Read waits for Close, for as long as pause.
type endless struct {
	pause  time.Duration
	closed chan struct{}
	close  sync.Once
	read   atomic.Int64
}

const (
	largeBody = 64 << 20
	// patience is how long a webhook at a URL has to refuse half of a body: a port-forward takes any size at once.
	patience = 4 * time.Second
)

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	read := e.read.Load()
	left := largeBody - read
	switch {
	case left == 0:
		return 0, io.EOF
	case read < largeBody/2:
		left = largeBody/2 - read
	case read == largeBody/2:
		pause := time.NewTimer(e.pause)
		defer pause.Stop()
		select {
		case <-e.closed:
			return 0, io.ErrUnexpectedEOF
		case <-pause.C:
		}
	}
	p = p[:min(int64(len(p)), left)]
	for i := range p {
		p[i] = 'a'
	}
	if read == 0 {
		copy(p, `{"apiVersion":"`)
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// Close implements io.Closer.
func (e *endless) Close() error {
	e.close.Do(func() { close(e.closed) })
	return nil
}

func checkLargeBody(t *check.T) {
	body := &endless{closed: make(chan struct{})}
	if t.URL != "" {
		body.pause = patience
	}
	a := t.SendRaw(t.Context(), t.Webhook, check.Raw{Body: body, Limit: 30 * time.Second}) // rule.DefaultBudget is less
	_ = body.Close()
	_, serves := t.Decide(t.Cases()[0].Request)
	noAnswer := check.NoAnswerError("")
	late := errors.As(a.Err, &noAnswer)
	switch read := body.read.Load(); {
	case read > largeBody/2+1<<20 && (t.URL == "" || !late): // a bit more is sent into a connection that is closed
		t.Errorf("a body of 64 MiB is not refused before half of it was read; want a limit of about 7 MiB")
	case a.NoDecision() == "" && a.Response.Allowed:
		t.Errorf("a body of 64 MiB is allowed")
	case a.Err == nil, t.URL != "" && read > 0 && serves && !late: // a server can close the connection
		t.Reached()
	default:
		t.LogOnce(a.Err.Error())
	}
	checkSlowSender(t)
}

// checkSlowSender sends reviews while another body arrives slowly.
func checkSlowSender(t *check.T) {
	const calls = 20
	cases := t.Cases()
	want, ok := t.Decide(cases[0].Request)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	body := &slow{begun: make(chan struct{}), end: ctx.Done()}
	slowly := make(chan check.Answer, 1)
	go func() { slowly <- t.SendRaw(ctx, t.Webhook, check.Raw{Body: io.NopCloser(body)}) }()
	defer func() {
		cancel()
		<-slowly
	}()
	select {
	case <-body.begun:
	case a := <-slowly: // the webhook reads no body
		slowly <- a
		return
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if got, ok := t.Decide(cases[0].Request); !ok {
				t.Errorf("%s, while the body of another call arrives slowly: %s", cases[0], got.Verdict())
			} else if !sameAllowed(want, got) {
				t.Errorf("%s, while the body of another call arrives slowly: got %s, want %s", cases[0], got.Verdict(), want.Verdict())
			}
		})
	}
	all.Wait()
}

// slow is a body with a byte for each second.
type slow struct {
	begun chan struct{} // closed by the first Read
	end   <-chan struct{}
	read  int
}

// Read implements io.Reader.
func (s *slow) Read(p []byte) (int, error) {
	if s.read++; s.read == 1 {
		close(s.begun)
	} else {
		pause := time.NewTimer(time.Second)
		defer pause.Stop()
		select {
		case <-s.end:
			return 0, io.ErrUnexpectedEOF
		case <-pause.C:
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = ' '
	return 1, nil
}

// checkLargeReview sends the first sample with an annotation that makes its objects as large as possible.
func checkLargeReview(t *check.T) {
	const object = 3<<20 - 64<<10
	for _, c := range t.Cases() {
		if !isCreate(c) {
			continue
		}
		large := func(u *unstructured.Unstructured) {
			annotate(u, "contract.example.com/large", strings.Repeat("a", object))
		}
		small := updateOf(c.Request, c.Request.Object, nil)
		r := updateOf(c.Request, changed(c.Request.Object, large), nil)
		if !t.Called(r) {
			small, r = c.Request, withObject(c.Request, changed(c.Request.Object, large))
		}
		if _, ok := t.Decide(small); !ok {
			continue
		}
		t.Reached()
		d := check.Decision{Answer: t.Send(t.Context(), t.Webhook, r)}
		tooLarge := !d.Response.Allowed && d.Response.Status.Code == http.StatusRequestEntityTooLarge
		if d.NoDecision() != "" || ownFailure(d) != "" || tooLarge { // another denial is a decision: about the long annotation, for example
			t.Errorf("%s with objects of 3 MiB: got %s; want a decision", check.Describe(r), d.Verdict())
		}
		return
	}
	t.Unsupported("no sample creates an object")
}

func checkNewer(t *check.T) {
	t.EachDecided(func(c check.Case, want check.Decision) {
		t.Reached()
		body := t.Review(c.Request)
		request, _ := body["request"].(map[string]any)
		user, _ := request["userInfo"].(map[string]any)
		for _, fields := range []map[string]any{body, request, user} {
			fields["contractFuture"] = map[string]any{"a": int64(1)}
		}
		if a := t.PostReview(body); a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
			t.Differs("%s with unknown fields in the review: got %s, want %s", c, a.Verdict(), want.Verdict())
		}
		if isCreate(c) {
			object := changed(c.Request.Object, func(u *unstructured.Unstructured) { u.Object["contractFuture"] = map[string]any{"a": int64(1)} })
			if a := t.Send(t.Context(), t.Webhook, withObject(c.Request, object)); a.NoDecision() != "" || a.Response.Allowed != want.Response.Allowed {
				t.Differs("%s with an unknown field in the object: got %s, want %s", c, a.Verdict(), want.Verdict())
			}
		}
		future := c.Request
		future.Operation = "FUTURE"
		if a := t.Send(t.Context(), t.Webhook, future); a.Err != nil {
			t.Errorf("%s as operation FUTURE: %v; want an answer", c, a.Err)
		}
	})
	checkUnknownKind(t)
}

// checkUnknownKind sends an object of a kind that no server has yet, if the webhook is called for it.
func checkUnknownKind(t *check.T) {
	r, err := t.Kinds.New(map[string]any{
		"apiVersion": "contract.example.com/v1", "kind": "Future", "metadata": map[string]any{"name": "future", "namespace": "default"}, "spec": map[string]any{"size": int64(1)},
	}, review.OpCreate, "")
	if err != nil {
		t.Fatalf("build a request for an unknown kind: %v", err)
	}
	if ok, _ := t.Reaches(t.Context(), t.Webhook, r); !ok || t.Config.Rules == nil {
		return
	}
	d := check.Decision{Answer: t.Send(t.Context(), t.Webhook, r)}
	if d.NoDecision() != "" || ownFailure(d) != "" {
		t.Errorf("%s of an unknown kind, which the rules match: %s", check.Describe(r), d.Verdict())
	}
}
