package hook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestCallsRecordWhatWasAsked(t *testing.T) {
	server := start(t)
	c := register(t, server, "o")
	c.call(t)
	calls := server.Calls("o")
	if len(calls) != 1 {
		t.Fatalf("got %d calls, want 1", len(calls))
	}
	call := calls[0]
	want := map[string]any{
		"apiVersion": v1, "kind": "AdmissionReview",
		"request": map[string]any{"uid": "u-1", "operation": "CREATE", "object": map[string]any{"n": int64(3), "f": 1.5}},
	}
	if diff := cmp.Diff(want, call.Review); diff != "" {
		t.Errorf("review: -want +got\n%s", diff)
	}
	got := []any{
		call.Webhook, call.Phase, call.Observed, call.Method, call.Path, call.Proto,
		call.Query.Get("timeout"), call.Header.Get("Content-Type"), call.Answer,
	}
	if diff := cmp.Diff([]any{
		"hook.example.com", framework.Mutating, true, "POST", "/o/c/hook.example.com", "HTTP/1.1",
		"7s", "application/json", "allowed",
	}, got); diff != "" {
		t.Errorf("call: -want +got\n%s", diff)
	}
	if call.Started.IsZero() || call.Finished.Before(call.Started) {
		t.Errorf("got started %v finished %v, want the second after the first", call.Started, call.Finished)
	}
	// The copy is the caller's own.
	call.Request()["uid"], call.Query["timeout"][0], call.Header["Content-Type"][0] = "spoilt", "spoilt", "spoilt"
	again := server.Calls("o")[0]
	if again.Request()["uid"] != "u-1" || again.Query.Get("timeout") != "7s" || again.Header.Get("Content-Type") != "application/json" {
		t.Errorf("writing to a copy changed the recording: %+v", again)
	}
}

func TestRequestsWithoutReview(t *testing.T) {
	server := start(t)
	c := register(t, server, "o")
	for body, want := range map[string]string{
		"":                        "no body",
		"{":                       "decode body",
		"null":                    "got apiVersion <nil>",
		"[]":                      "decode body",
		`{"kind":"Pod"}`:          "kind Pod",
		string(review("v9", "u")): "apiVersion v9",
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`: "has no request",
	} {
		t.Run(body, func(t *testing.T) {
			server.Restart("o")
			got, err := c.post(t.Context(), []byte(body))
			if err != nil || got.StatusCode != http.StatusBadRequest || !strings.Contains(string(got.body), want) {
				t.Errorf("body %q: got %v %q, want 400 and %q", body, err, got.body, want)
			}
			if calls := server.Calls("o"); len(calls) != 1 || !strings.HasPrefix(calls[0].Answer, "refused: ") {
				t.Errorf("body %q: got calls %+v, want one, refused", body, calls)
			}
		})
	}
	server.Restart("o")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.do(request); err != nil {
		t.Fatal(err)
	}
	if calls := server.Calls("o"); len(calls) != 1 || calls[0].Method != http.MethodGet || calls[0].Review != nil {
		t.Errorf("got %+v, want one GET without review", calls)
	}
}

func TestRecordAndUnregister(t *testing.T) {
	server := start(t)
	c, other := register(t, server, "o", hook.Reply{Warnings: []string{"first"}}, hook.Reply{}), register(t, server, "p")
	c.call(t)
	other.call(t)
	server.Restart("o")
	if calls := server.Calls("o"); len(calls) != 0 {
		t.Errorf("new Recording: got %+v, want no calls", calls)
	}
	if warnings := c.call(t).response(t)["warnings"]; warnings != nil {
		t.Errorf("got %v, want the second reply", warnings)
	}
	if got := len(server.Calls("p")); got != 1 {
		t.Errorf("other owner: got %d calls, want 1", got)
	}
	server.Unregister("o")
	server.Unregister("o")
	if got := c.call(t); got.StatusCode != http.StatusNotFound || server.Strangers().Requests != 0 || len(server.Calls("o")) != 1 || server.Err("o") != nil {
		t.Errorf("after Unregister: got %d, foreign requests %d, calls %v, err %v; want 404, 0, the one before, none", got.StatusCode, server.Strangers().Requests, server.Calls("o"), server.Err("o"))
	}
}

func TestMeanwhile(t *testing.T) {
	server := start(t)
	var seen []int
	reply := hook.Reply{Meanwhile: func() error {
		calls := server.Calls("o")
		if !calls[len(calls)-1].Finished.IsZero() {
			t.Error("the call is finished before Meanwhile is")
		}
		seen = append(seen, len(calls))
		return fmt.Errorf("broken %d", len(calls))
	}}
	c := register(t, server, "o", reply, reply, hook.Reply{Meanwhile: func() error { panic("at once") }})
	if err := server.Err("o"); err != nil {
		t.Errorf("got %v, want no error before the first call", err)
	}
	for range 3 {
		c.call(t)
	}
	if diff := cmp.Diff([]int{1, 2}, seen); diff != "" {
		t.Errorf("runs of Meanwhile: -want +got\n%s", diff)
	}
	const want = "run meanwhile of webhook hook.example.com: broken 1"
	if err := server.Err("o"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	p := register(t, server, "p", hook.Reply{Meanwhile: func() error { panic("at once") }})
	p.call(t)
	if err := server.Err("p"); err == nil || !strings.Contains(err.Error(), "panic: at once") {
		t.Errorf("got %v, want the panic", err)
	}
}

func TestBarrierShowsConcurrency(t *testing.T) {
	server := start(t)
	reply := hook.Reply{Barrier: "b", BarrierSize: 3}
	c, alone := register(t, server, "o", reply), register(t, server, "p", reply)
	ctx, giveUp := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = alone.post(ctx, review(v1, "u")) })
	until(t, "the lone call arrives", func() bool { return len(server.Calls("p")) == 1 })
	for range 2 { // an open barrier leaves an empty one behind
		server.Restart("o")
		var together sync.WaitGroup
		for range 3 {
			together.Go(func() {
				if _, err := c.post(t.Context(), review(v1, "u")); err != nil {
					t.Error(err)
				}
			})
		}
		together.Wait()
		calls := server.Calls("o")
		for _, call := range calls {
			if last := calls[2].Started; call.Finished.Before(last) {
				t.Errorf("a call was answered at %v, before the last arrived at %v", call.Finished, last)
			}
		}
	}
	if call := server.Calls("p")[0]; !call.Finished.IsZero() {
		t.Error("a call of another owner passed the barrier")
	}
	giveUp()
	waiting.Wait()
}

// TestBarrierIsLeft: a call whose caller has given up does not count.
func TestBarrierIsLeft(t *testing.T) {
	server := start(t)
	c := register(t, server, "o", hook.Reply{Barrier: "b", BarrierSize: 2})
	short, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := c.post(short, review(v1, "u"))
		first <- err
	}()
	until(t, "the first call arrives", func() bool { return len(server.Calls("o")) == 1 })
	giveUp()
	if err := <-first; err == nil {
		t.Error("the first call was answered alone")
	}
	until(t, "the first call has left", func() bool { return !server.Calls("o")[0].Finished.IsZero() })
	ctx, end := context.WithCancel(t.Context())
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.post(ctx, review(v1, "u"))
	}()
	until(t, "the second call arrives", func() bool { return len(server.Calls("o")) == 2 })
	if call := server.Calls("o")[1]; !call.Finished.IsZero() {
		t.Error("the second call met one that had left")
	}
	c.call(t)
	eventually(t, "the second call meets the third", done)
}

func TestRegister(t *testing.T) {
	server := start(t)
	ordinary := hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating}
	first, err := server.Register(ordinary)
	if err != nil || !strings.HasPrefix(first.URL, "https://127.0.0.1:") || !strings.HasSuffix(first.URL, "/o/c/w") {
		t.Fatalf("got %s, %v; want https://127.0.0.1:PORT/o/c/w", first.URL, err)
	}
	other := ordinary
	other.Phase = framework.Validating
	second, err := server.Register(other)
	if err != nil || second.URL != first.URL+"/validating" {
		t.Errorf("same names in the other phase: got %s, %v; want %s/validating", second.URL, err, first.URL)
	}
	ordinary.Script.Replies = []hook.Reply{{Warnings: []string{"again"}}}
	again, err := server.Register(ordinary)
	if err != nil || again.URL != first.URL {
		t.Errorf("again: got %s, %v; want %s", again.URL, err, first.URL)
	}
	if warnings := fmt.Sprint(callerOf(t, again).call(t).response(t)["warnings"]); warnings != "[again]" {
		t.Errorf("again: got warnings %s, want the warnings of the new script", warnings)
	}
	callerOf(t, second).call(t)
	if got := server.Calls("o"); len(got) != 2 || got[1].Phase != framework.Validating {
		t.Errorf("got %+v, want the second call validating", got)
	}
	for want, wrong := range map[string]hook.Hook{
		"Owner":         {Configuration: "c", Webhook: "w", Phase: framework.Mutating},
		"Configuration": {Owner: "o", Configuration: "a/b", Webhook: "w", Phase: framework.Mutating},
		"Webhook":       {Owner: "o", Configuration: "c", Webhook: "..", Phase: framework.Mutating},
		"Phase":         {Owner: "o", Configuration: "c", Webhook: "w", Phase: "mutate"},
		"unknown fault": {Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating, Script: hook.Script{Replies: []hook.Reply{{Fault: "x"}}}},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := server.Register(wrong); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error about %s", err, want)
			}
		})
	}
}

func TestSetScript(t *testing.T) {
	server := start(t)
	mutating := register(t, server, "o", hook.Reply{})
	elsewhere, err := server.Register(hook.Hook{Owner: "o", Configuration: "d", Webhook: "hook.example.com", Phase: framework.Validating})
	if err != nil {
		t.Fatal(err)
	}
	deny := hook.Script{Replies: []hook.Reply{{Allowed: pointer(false)}}}
	if err := server.SetScript("o", "hook.example.com", deny); err != nil {
		t.Fatal(err)
	}
	for _, c := range []caller{mutating, callerOf(t, elsewhere)} {
		if allowed := c.call(t).response(t)["allowed"]; allowed != false {
			t.Errorf("%s: got allowed %v, want the new script everywhere", c.url, allowed)
		}
	}
	register(t, server, "refused", hook.Reply{Fault: hook.Refused})
	refused := hook.Script{Replies: []hook.Reply{{Fault: hook.Refused}}}
	for _, test := range []struct {
		owner, webhook string
		script         hook.Script
		want           string
	}{
		{"nobody", "hook.example.com", deny, `owner "nobody" has no hooks`},
		{"o", "hok.example.com", deny, `did you mean "hook.example.com"?`},
		{"o", "hook.example.com", refused, `fault "refused" is a fault of the connection, which a new script cannot add or remove`},
		{"refused", "hook.example.com", deny, `fault "refused" is a fault of the connection, which a new script cannot add or remove`},
		{"o", "hook.example.com", hook.Script{Replies: []hook.Reply{{Fault: "http-50"}}}, `did you mean "http-500"?`},
	} {
		t.Run(test.want, func(t *testing.T) {
			if err := server.SetScript(test.owner, test.webhook, test.script); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if err := server.SetScript("refused", "hook.example.com", refused); err != nil {
		t.Errorf("the same fault of the connection: got %v, want nil", err)
	}
}

func TestStartRefusesBadOptions(t *testing.T) {
	taken := start(t)
	endpoint := register(t, taken, "o").url
	for want, options := range map[string]hook.Options{
		"host:port":              {Address: "nonsense"},
		"set AdvertiseHost":      {Address: "0.0.0.0:0"},
		"address already in use": {Address: host(t, endpoint)},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := hook.Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %s", options, err, want)
			}
		})
	}
	server, err := hook.Start(t.Context(), hook.Options{Address: "0.0.0.0:0", AdvertiseHost: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := register(t, record(server), "o")
	if !strings.HasPrefix(c.url, "https://localhost:") {
		t.Errorf("got %s, want the advertised host", c.url)
	}
	c.call(t)
	if string(server.Address().CABundle) == string(taken.Address().CABundle) {
		t.Error("two servers have one CA, want one each")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	started, err := hook.Start(ctx, hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := record(started)
	for _, fault := range []hook.Fault{hook.Refused, hook.TLSExpired, hook.TLSWrongName, hook.TLSWrongCA} {
		_, _ = register(t, server, string(fault), hook.Reply{Fault: fault}).post(t.Context(), review(v1, "u"))
	}
	hanging := register(t, server, "o", hook.Reply{Fault: hook.Hang})
	done := make(chan error, 1)
	go func() {
		_, err := hanging.post(t.Context(), review(v1, "u"))
		done <- err
	}()
	until(t, "the call arrives", func() bool { return len(server.Calls("o")) == 1 })
	cancel() // as good as Close
	if err := <-done; err == nil {
		t.Error("the hanging call was answered, want it cut off")
	}
	if err := errors.Join(server.Close(), server.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := server.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("register after close: got %v, want an error", err)
	}
	goleak.VerifyNone(t, before)
}
