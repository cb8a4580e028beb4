package execution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// An API server that expects to be overloaded can be tested: its code is not one of the
// infrastructure if a scenario expects it.
func TestInfrastructureOfFailures(t *testing.T) {
	t.Parallel()
	code := []expect.Mismatch{{Path: "code"}}
	for name, test := range map[string]struct {
		failure Failure
		want    bool
	}{
		"503":                            {Failure{Step: expect.Step{Result: response(503, ""), Mismatches: code}}, true},
		"503 as expected":                {Failure{Step: expect.Step{Result: response(503, ""), Mismatches: []expect.Mismatch{{Path: "message"}}, Expect: &scenario.Expectation{Code: scenario.OneOrMore[int]{503}}}}, false},
		"a refusal expected":             {Failure{Step: expect.Step{Result: response(504, ""), Mismatches: []expect.Mismatch{{Path: "calls[0]"}}}}, true},
		"403":                            {Failure{Step: expect.Step{Result: response(403, ""), Mismatches: code}}, false},
		"no roles yet":                   {Failure{Step: expect.Step{Result: response(403, `validatingwebhookconfigurations is forbidden: User "a" cannot create resource "validatingwebhookconfigurations"`), Mismatches: code}}, true},
		"no roles yet, but 403 expected": {Failure{Step: expect.Step{Result: response(403, `configmaps is forbidden: User "a" cannot create resource "configmaps"`), Mismatches: []expect.Mismatch{{Path: "calls[0]"}}}}, true},
		"plugin not ready":               {Failure{Step: expect.Step{Result: response(403, `configmaps "a" is forbidden: not yet ready to handle request`), Mismatches: code}}, true},
		"a webhook that says so":         {Failure{Step: expect.Step{Result: response(403, `admission webhook "a" denied the request: b is forbidden: User "a" cannot create`), Mismatches: code}}, false},
		"refused by a policy":            {Failure{Step: expect.Step{Result: response(503, "ValidatingAdmissionPolicy 'a' denied request"), Mismatches: code}}, false},
		"no audit event":                 {Failure{Step: expect.Step{Expect: &scenario.Expectation{Audit: map[string]any{}}, Mismatches: []expect.Mismatch{{Path: "audit"}}}}, true},
		"administrative":                 {Failure{Err: fmt.Errorf("install: %w", apierrors.NewServiceUnavailable("down"))}, true},
		"administrative, for good":       {Failure{Err: fmt.Errorf("install: %w", apierrors.NewBadRequest("no"))}, false},
		"during a webhook call":          {Failure{Err: fmt.Errorf("meanwhile: %w", expect.ErrDuringCall)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			failure := &test.failure
			if failure.Err == nil {
				failure = caseOn(&fakeSandbox{}).judged(t.Context(), test.failure, nil, "")
			}
			if got := failure.NothingAboutAdmission(); (got != "") != test.want {
				t.Errorf("got %q, want a cause: %t", got, test.want)
			}
		})
	}
}

// A lost request of a parallel step decides, even if others failed because of it.
func TestLostRequestInParallel(t *testing.T) {
	t.Parallel()
	refused := &Failure{Step: expect.Step{Action: "a", Result: response(500, `failed calling webhook "a": context deadline exceeded`), Mismatches: []expect.Mismatch{{Path: "code"}}}}
	lost := &Failure{Step: expect.Step{Action: "b"}, Err: framework.ErrNoResponse}
	if got := ofParallel([]*Failure{nil, refused, lost}); got != lost || got.Action != "parallel[2] b" {
		t.Errorf("got %v, want the lost request", got)
	}
	if got := ofParallel([]*Failure{nil, refused}); got != refused || got.Action != "parallel[1] a" {
		t.Errorf("got %v, want the refused request", got)
	}
	if got := ofParallel([]*Failure{nil}); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}

// panicking is a Sandbox with a bug.
type panicking struct{ fakeSandbox }

func (*panicking) Do(context.Context, framework.Request) (framework.Result, error) {
	panic("a bug of the sandbox")
}

func (p *panicking) Send(ctx context.Context, r framework.Request) (framework.Result, error) {
	return p.Do(ctx, r)
}

// A panic is an error of one scenario, with its stack, in parallel steps too.
func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	server, err := hook.Start(t.Context(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	get := scenario.Step{Get: &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}
	for name, step := range map[string]scenario.Step{"step": get, "parallel": {Parallel: []scenario.Step{get, get}}} {
		t.Run(name, func(t *testing.T) {
			c := caseOn(&recordingPanic{server: server})
			failure := c.step(t.Context(), step)
			if failure == nil || !errors.Is(failure.Err, errPanic) || !strings.Contains(failure.Err.Error(), "a bug of the sandbox") || !strings.Contains(failure.Err.Error(), "failure_test.go") {
				t.Errorf("got %v, want an error with the stack", failure)
			}
			if outcome := c.Outcome(failure); outcome.Verdict != framework.Errored {
				t.Errorf("got %s, want error", outcome.Verdict)
			}
		})
	}
}

type recordingPanic struct {
	panicking
	server *hook.Server
}

func (p *recordingPanic) Record() *hook.Recording { return p.server.Record("o") }

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
		received     bool // the Hook received the call, so that the step is about the code only
		delay        time.Duration
		clientConfig any
	}{
		"timed out":              {result: late(2 * time.Second), unreached: true},
		"refused":                {result: failed("dial tcp 127.0.0.1:1: connect: connection refused")},
		"not called":             {result: framework.Result{Status: metav1.Status{Code: 201}}},
		"timed out and ignored":  {result: ignored(2 * time.Second), unreached: true},
		"failed and ignored":     {result: ignored(10 * time.Millisecond)},
		"not so long":            {result: ignored(2*time.Second - 1)},
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
				map[string]any{"name": "silent.example.com", "timeoutSeconds": int64(2), "clientConfig": test.clientConfig},
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

// losingSandbox loses the first responses.
type losingSandbox struct {
	fakeSandbox
	losses int
}

func (s *losingSandbox) Do(ctx context.Context, r framework.Request) (framework.Result, error) {
	if s.losses > 0 {
		s.losses--
		return framework.Result{}, framework.ErrNoResponse
	}
	return s.fakeSandbox.Do(ctx, r)
}

// A request whose response was lost is only repeated if the step must hold eventually,
// and only for as long as the patience lasts.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	for name, test := range map[string]struct {
		eventually bool
		losses     int
		patience   time.Duration
		lost       bool
	}{
		"eventually": {eventually: true, losses: 2, patience: time.Minute},
		"never":      {eventually: true, losses: 1 << 30, patience: 30 * time.Millisecond, lost: true},
		"at once":    {losses: 1, patience: time.Minute, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := caseOn(&losingSandbox{losses: test.losses})
			c.patience = test.patience
			failure := c.step(t.Context(), scenario.Step{Get: &reference, Eventually: test.eventually})
			switch {
			case !test.lost && failure != nil:
				t.Error(failure)
			case test.lost && (failure == nil || !errors.Is(failure.Err, framework.ErrNoResponse)):
				t.Errorf("got %v, want an ErrNoResponse", failure)
			}
		})
	}
}
