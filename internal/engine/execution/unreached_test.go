package execution

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// answeringSandbox answers each request with one result, without a call of a Hook.
type answeringSandbox struct {
	fakeSandbox
	result framework.Result
	server *hook.Server
}

func (s *answeringSandbox) Record() *hook.Recording { return s.server.Record("o") }

func (s *answeringSandbox) Send(ctx context.Context, r framework.Request) (framework.Result, error) {
	return s.Do(ctx, r)
}

func (s *answeringSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	return s.result, nil
}

// A call that the API server gave up before the Hook had it says nothing about admission. One
// that it could not make, or did not make, is a failure.
func TestUnreachedHook(t *testing.T) {
	t.Parallel()
	failed := func(why string) framework.Result {
		return framework.Result{Status: metav1.Status{Code: 500, Message: `Internal error occurred: failed calling webhook "silent.example.com": failed to call webhook: Post "https://127.0.0.1:1/": ` + why}}
	}
	ignored := func(took time.Duration) framework.Result {
		at := time.Unix(1, 0)
		return framework.Result{Status: metav1.Status{Code: 201}, Started: at, Finished: at.Add(took)}
	}
	late := func(took time.Duration) framework.Result {
		result := failed("context deadline exceeded")
		result.Started = time.Unix(1, 0)
		result.Finished = result.Started.Add(took)
		return result
	}
	held := func(result framework.Result, by time.Duration) framework.Result {
		result.Trace = framework.Trace{{Webhook: "other.example.com", Started: result.Started, Finished: result.Started.Add(by)}}
		return result
	}
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	for name, test := range map[string]struct {
		result       framework.Result
		unreached    bool
		policy       string // failurePolicy of the webhook; empty means Ignore
		received     bool   // the Hook received the call, so that the step is about the code only
		delay        time.Duration
		clientConfig any
	}{
		"timed out":              {result: failed("context deadline exceeded"), unreached: true},
		"refused":                {result: failed("dial tcp 127.0.0.1:1: connect: connection refused")},
		"not called":             {result: framework.Result{Status: metav1.Status{Code: 201}}},
		"timed out and ignored":  {result: ignored(2 * time.Second), unreached: true},
		"failed and ignored":     {result: ignored(10 * time.Millisecond)},
		"not so long":            {result: ignored(2*time.Second - 1)},
		"not ignored":            {result: ignored(2 * time.Second), policy: "Fail"},
		"another call took long": {result: held(ignored(3*time.Second), 2*time.Second)},
		"late answer":            {result: late(2 * time.Second), received: true, unreached: true},
		"time ended too soon":    {result: late(2*time.Second - 1), received: true},
		"late by a delay":        {result: late(2 * time.Second), received: true, delay: time.Second},
		"late webhook of others": {result: late(2 * time.Second), received: true, clientConfig: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := caseOn(&answeringSandbox{result: test.result, server: server})
			c.Given = []map[string]any{{"webhooks": []any{
				map[string]any{"name": "silent.example.com", "failurePolicy": cmp.Or(test.policy, "Ignore"), "timeoutSeconds": int64(2), "clientConfig": test.clientConfig},
			}}}
			c.scripts = map[string]hook.Script{"silent.example.com": {Replies: []hook.Reply{{Delay: hook.Duration(test.delay)}}}}
			get := scenario.Step{Get: &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}
			inner := get
			inner.Then = &scenario.Expectation{Code: scenario.OneOrMore[int]{int(test.result.Status.Code)}}
			parallel := scenario.Step{Parallel: []scenario.Step{inner, inner}}
			steps := []scenario.Step{get, parallel}
			if test.received || test.result.Trace != nil {
				steps = steps[:1]
			}
			for _, step := range steps {
				step.Then = &scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "silent.example.com"}}}}
				if test.received {
					step.Then = &scenario.Expectation{Code: scenario.OneOrMore[int]{http.StatusOK}}
				}
				f := c.step(t.Context(), step)
				if f == nil {
					t.Fatal("the step held without the call")
				}
				if got := f.NothingAboutAdmission(); (got != "") != test.unreached || test.unreached && !strings.Contains(got, "silent.example.com") {
					t.Errorf("got %q; want a reason: %v", got, test.unreached)
				}
			}
		})
	}
}
