package check

import (
	"context"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// Response is the result of a request that was sent through both phases of a plugin.
type Response struct {
	Result harness.Result
	// Err is the error of Harness.Run, for example a panic of the plugin, or the error of a context
	// that had ended before. If it is not nil, there is no Result.
	Err error
}

// Send sends a request through both phases of a plugin. It does not call the plugin if the context
// has ended.
func Send(ctx context.Context, h *harness.Harness, request framework.Request) Response {
	if ctx.Err() != nil {
		return Response{Err: fmt.Errorf("send %s: %w", request, ctx.Err())}
	}
	result, err := h.Run(ctx, request)
	return Response{result, err}
}

// SendAsync is Send in a new goroutine, for plugins that may not return. The channel has
// room for the Response.
func SendAsync(ctx context.Context, h *harness.Harness, request framework.Request) <-chan Response {
	done := make(chan Response, 1)
	go func() { done <- Send(ctx, h, request) }()
	return done
}

// SendAll sends all requests of the Subject to a plugin, one at a time, in order.
func (t *T) SendAll(h *harness.Harness) []Response {
	var responses []Response
	for _, request := range t.Requests() {
		responses = append(responses, Send(t.Context(), h, request))
	}
	return responses
}

// Within waits for a Response, and returns false if none comes within the limit.
func Within(limit time.Duration, done <-chan Response) (Response, bool) {
	ctx, _, cancel := rule.WithLimit(context.Background(), limit)
	defer cancel()
	select {
	case got := <-done:
		return got, true
	case <-ctx.Done():
		return Response{}, false
	}
}

// String returns the verdict: "refused with 403 Forbidden (namespace not found)".
func (r Response) String() string {
	switch status := r.Result.Status; {
	case r.Err != nil:
		return "panic (" + r.Err.Error() + ")"
	case r.Result.Err != nil:
		return fmt.Sprintf("refused with %d %s (%s)", status.Code, status.Reason, status.Message)
	default:
		return "admitted"
	}
}

// SameVerdict reports whether both requests were admitted, or both were refused with the
// same code and reason. It does not compare messages: the rules for refusals do.
func SameVerdict(a, b Response) bool {
	x, y := a.Result.Status, b.Result.Status
	return (a.Err == nil) == (b.Err == nil) && (a.Result.Err == nil) == (b.Result.Err == nil) &&
		x.Code == y.Code && x.Reason == y.Reason
}

// Difference returns how the verdict or the object of got differs from expected. Empty
// means that both are the same.
func Difference(expected, got Response) string {
	switch {
	case !SameVerdict(expected, got):
		return fmt.Sprintf("got %s, want %s", got, expected)
	case got.Err != nil || got.Result.Err != nil || Equal(expected.Result.Object, got.Result.Object):
		return ""
	default:
		return "the object differs (- want, + got):\n" + Diff(expected.Result.Object, got.Result.Object)
	}
}

// CompareResponses compares the responses got with the expected ones, reports each difference as a
// failure, and returns how many responses it could compare. When is the part of the message that
// says what was different this time.
//
// If again is not nil, it must send the same requests under the conditions of expected. It shows
// which responses vary anyway: if the object of a response varies, only the verdicts are compared;
// if the verdict varies, nothing is compared.
func (t *T) CompareResponses(when string, expected, got []Response, again func() []Response) (compared int) {
	tried := repeats{send: again, late: t.HalfBudget()}
	for i, request := range t.Requests() {
		if expected[i].Err != nil {
			t.Logf("ignored %s: %v", request, expected[i].Err)
			continue
		}
		compared++
		text := Difference(expected[i], got[i])
		if text == "" {
			continue
		}
		verdict, object := tried.vary(i, expected[i])
		switch {
		case verdict:
			t.Logf("ignored %s: its verdict varies from plugin to plugin", request)
			compared--
			continue
		case object && SameVerdict(expected[i], got[i]):
			continue // the object of this response varies anyway
		}
		t.Errorf("%s %s: %s", request, when, text)
	}
	return compared
}

// repeats are the responses to the same requests, sent again and again. All requests share them: a
// plugin can need seconds for a request.
type repeats struct {
	send func() []Response // nil means that nothing is sent
	late func() bool
	got  [][]Response
}

// vary reports whether the verdict of a response, or the object, ever differs from the expected one.
// It stops when the verdict does.
func (r *repeats) vary(i int, expected Response) (verdict, object bool) {
	for n := 0; r.has(n) && !verdict; n++ {
		second := r.got[n][i]
		verdict = !SameVerdict(expected, second)
		object = object || Difference(expected, second) != ""
	}
	return verdict, object
}

// has sends the requests again if that was not done n+1 times, and time is left. It returns whether
// there are these responses.
func (r *repeats) has(n int) bool {
	if n == len(r.got) && r.send != nil && n < trials && (n == 0 || !r.late()) {
		r.got = append(r.got, r.send())
	}
	return n < len(r.got)
}

// trials is how often Ever calls its function at most. It is large because two iterations over a
// small Go map often have the same order.
const trials = 64

// Ever calls f until it returns true, but not more than 64 times, and not for longer than half
// of the time that is left. It returns whether f returned true.
func (t *T) Ever(f func() bool) bool {
	late := t.HalfBudget()
	for range trials {
		if f() {
			return true
		}
		if late() {
			return false
		}
	}
	return false
}

// Varies reports whether a new plugin ever responds to a request in another way than expected. Then a difference
// from the expected response shows nothing.
func (t *T) Varies(request framework.Request, expected Response) bool {
	return t.Ever(func() bool { return Difference(expected, Send(t.Context(), t.Plugin(), request)) != "" })
}

// Effect returns what the plugin did for a request: refused the request, changed the object, or
// wrote with a client. Empty means that it did none of these.
func Effect(result harness.Result) string {
	switch {
	case result.Err != nil:
		return "refused it: " + result.Status.Message
	case !Equal(result.Before, result.Object):
		return "changed the object (- was, + is):\n" + Diff(result.Before, result.Object)
	case len(result.Calls.Writes()) > 0:
		return "wrote:\n" + result.Calls.Writes().String()
	default:
		return ""
	}
}
