package engine

import (
	"context"
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
	ignored := func(webhook string, took time.Duration) framework.Result {
		at := time.Unix(1, 0)
		return framework.Result{Status: metav1.Status{Code: 201}, AuditID: webhook, Started: at, Finished: at.Add(took)}
	}
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	for name, test := range map[string]struct {
		result    framework.Result
		unreached bool
	}{
		"timed out":             {failed("context deadline exceeded"), true},
		"refused":               {failed("dial tcp 127.0.0.1:1: connect: connection refused"), false},
		"not called":            {framework.Result{Status: metav1.Status{Code: 201}}, false},
		"timed out and ignored": {ignored("silent.example.com", time.Second), true},
		"failed and ignored":    {ignored("silent.example.com", 10*time.Millisecond), false},
		"another one ignored":   {ignored("other.example.com", time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := caseOn(&answeringSandbox{result: test.result, server: server})
			c.target = observedTarget{
				fakeTarget: fakeTarget{sandbox: c.sandbox}, wanted: test.result.AuditID,
				event: &framework.Audit{Annotations: map[string]string{"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": test.result.AuditID}},
			}
			get := scenario.Step{Get: &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}
			inner := get
			inner.Then = &scenario.Expectation{Code: scenario.OneOrMore[int]{int(test.result.Status.Code)}}
			parallel := scenario.Step{Parallel: []scenario.Step{inner, inner}}
			for _, step := range []scenario.Step{get, parallel} {
				step.Then = &scenario.Expectation{Calls: &scenario.Calls{InOrder: []scenario.Call{{Webhook: "silent.example.com"}}}}
				f := c.step(t.Context(), step)
				if f == nil {
					t.Fatal("the step held without the call")
				}
				if got := f.infrastructure(); (got != "") != test.unreached || test.unreached && !strings.Contains(got, "silent.example.com") {
					t.Errorf("got %q; want a reason: %v", got, test.unreached)
				}
			}
		})
	}
}
