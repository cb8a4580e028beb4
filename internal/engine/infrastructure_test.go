package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/target"
)

// unsteady is a Provider, a Target and a Sandbox whose first responses are not about
// admission.
type unsteady struct {
	target.Target
	target.Sandbox
	// bad answers the first requests of each scenario. After them, requests succeed.
	bad func() (framework.Result, error)
	// times is how many requests fail, dead how many questions of Alive.
	times, dead int

	mu       sync.Mutex
	requests int
}

func (u *unsteady) Check(context.Context, []scenario.Scenario) error { return nil }
func (u *unsteady) Version(context.Context) (string, error)          { return "v1.36.3", nil }
func (u *unsteady) Start(context.Context, target.StartOptions) (target.Target, error) {
	return unsteadyTarget{fakeTarget{sandbox: u}, u}, nil
}

func (u *unsteady) Uninstall(context.Context) error { return nil }
func (u *unsteady) Record() *hook.Recording         { return nil }

func (u *unsteady) Do(context.Context, framework.Request) (framework.Result, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests++
	if u.requests <= u.times {
		return u.bad()
	}
	return response(200, ""), nil
}

func (u *unsteady) Info() framework.TargetInfo { return framework.TargetInfo{} }

type unsteadyTarget struct {
	fakeTarget
	u *unsteady
}

func (unsteadyTarget) RunID() string               { return "unsteady" }
func (unsteadyTarget) Close(context.Context) error { return nil }
func (t unsteadyTarget) Alive(context.Context) error {
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	if t.u.dead--; t.u.dead >= 0 {
		return framework.ErrNoResponse
	}
	return nil
}

func response(code int32, message string) framework.Result {
	var result framework.Result
	result.Status.Code, result.Status.Message = code, message
	return result
}

func read(name string) scenario.Scenario {
	s := scenario.Scenario{Metadata: scenario.Metadata{Name: name}}
	s.Spec.Level = framework.Must
	s.Spec.When = []scenario.Step{{
		Get:  &scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"},
		Then: &scenario.Expectation{Code: scenario.OneOrMore[int]{200}},
	}}
	return s
}

// What the infrastructure did is no verdict about admission: the scenario is repeated, and
// the report says so.
func TestInfrastructureIsNoVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad         func() (framework.Result, error)
		times, dead int
		verdict     framework.Verdict
		repeated    int
		says        string
	}{
		"overloaded once": {bad: func() (framework.Result, error) { return response(429, "too many requests"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"not available":   {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 2, verdict: framework.Pass, repeated: 2},
		"timeout":         {bad: func() (framework.Result, error) { return response(504, "request did not complete"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"leader changed":  {bad: func() (framework.Result, error) { return response(500, "etcdserver: leader changed"), nil }, times: 1, verdict: framework.Pass, repeated: 1},
		"lost response":   {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, verdict: framework.Pass, repeated: 1},
		"restart":         {bad: func() (framework.Result, error) { return framework.Result{}, framework.ErrNoResponse }, times: 1, dead: 3, verdict: framework.Pass, repeated: 1},
		"for ever":        {bad: func() (framework.Result, error) { return response(503, "apiserver is shutting down"), nil }, times: 1000, verdict: framework.Inconclusive, repeated: repeatLimit, says: "responded with 503"},
		"denied by a webhook": {bad: func() (framework.Result, error) {
			return response(503, `admission webhook "a" denied the request`), nil
		}, times: 1, verdict: framework.Fail},
		"other failure": {bad: func() (framework.Result, error) { return response(500, "no such thing"), nil }, times: 1, verdict: framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unsteady{bad: test.bad, times: test.times, dead: test.dead}
			out, err := Run(t.Context(), Options{Provider: u, Scenarios: []scenario.Scenario{read("a.one")}})
			if err != nil {
				t.Fatal(err)
			}
			got := out.Outcomes[0]
			if got.Verdict != test.verdict || got.Repeated != test.repeated || !strings.Contains(got.Reason, test.says) {
				t.Errorf("got %s after %d repetitions (%s), want %s after %d, with %q", got.Verdict, got.Repeated, got.Reason, test.verdict, test.repeated, test.says)
			}
		})
	}
}

// An API server that expects to be overloaded can be tested: its code is not one of the
// infrastructure if a scenario expects it.
func TestInfrastructureOfFailures(t *testing.T) {
	t.Parallel()
	code := []judge.Mismatch{{Path: "code"}}
	for name, test := range map[string]struct {
		failure failure
		want    bool
	}{
		"503":                            {failure{result: response(503, ""), mismatches: code}, true},
		"503 as expected":                {failure{result: response(503, ""), mismatches: []judge.Mismatch{{Path: "message"}}, codeExpected: true}, false},
		"a refusal expected":             {failure{result: response(504, ""), mismatches: []judge.Mismatch{{Path: "calls[0]"}}}, true},
		"403":                            {failure{result: response(403, ""), mismatches: code}, false},
		"no roles yet":                   {failure{result: response(403, `validatingwebhookconfigurations is forbidden: User "a" cannot create resource "validatingwebhookconfigurations"`), mismatches: code}, true},
		"no roles yet, but 403 expected": {failure{result: response(403, `configmaps is forbidden: User "a" cannot create resource "configmaps"`), mismatches: []judge.Mismatch{{Path: "calls[0]"}}}, true},
		"plugin not ready":               {failure{result: response(403, `configmaps "a" is forbidden: not yet ready to handle request`), mismatches: code}, true},
		"a webhook that says so":         {failure{result: response(403, `admission webhook "a" denied the request: b is forbidden: User "a" cannot create`), mismatches: code}, false},
		"refused by a policy":            {failure{result: response(503, "ValidatingAdmissionPolicy 'a' denied request"), mismatches: code}, false},
		"no audit event":                 {failure{unobserved: "no audit event", mismatches: []judge.Mismatch{{Path: "audit"}}}, true},
		"administrative":                 {failure{err: fmt.Errorf("install: %w", apierrors.NewServiceUnavailable("down"))}, true},
		"administrative, for good":       {failure{err: fmt.Errorf("install: %w", apierrors.NewBadRequest("no"))}, false},
		"during a webhook call":          {failure{err: fmt.Errorf("meanwhile: %w", errInfrastructure)}, true},
	} {
		if got := test.failure.infrastructure(); (got != "") != test.want {
			t.Errorf("%s: got %q, want a cause: %t", name, got, test.want)
		}
	}
}

// A lost request of a parallel step decides, even if others failed because of it.
func TestLostRequestInParallel(t *testing.T) {
	t.Parallel()
	refused := &failure{action: "a", result: response(500, `failed calling webhook "a": context deadline exceeded`), mismatches: []judge.Mismatch{{Path: "code"}}}
	lost := &failure{action: "b", err: framework.ErrNoResponse}
	if got := ofParallel([]*failure{nil, refused, lost}); got != lost || got.action != "parallel[2] b" {
		t.Errorf("got %v, want the lost request", got)
	}
	if got := ofParallel([]*failure{nil, refused}); got != refused || got.action != "parallel[1] a" {
		t.Errorf("got %v, want the refused request", got)
	}
	if got := ofParallel([]*failure{nil}); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}

// panicking is a Sandbox with a bug.
type panicking struct{ fakeSandbox }

func (*panicking) Do(context.Context, framework.Request) (framework.Result, error) {
	panic("a bug of the sandbox")
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
		c := caseOn(&recordingPanic{server: server})
		failure := c.step(t.Context(), step)
		if failure == nil || !errors.Is(failure.err, errPanic) || !strings.Contains(failure.err.Error(), "a bug of the sandbox") || !strings.Contains(failure.err.Error(), "infrastructure_test.go") {
			t.Errorf("%s: got %v, want an error with the stack", name, failure)
		}
		if outcome := failure.outcome(c, 1, 1); outcome.Verdict != framework.Errored {
			t.Errorf("%s: got %s, want error", name, outcome.Verdict)
		}
	}
}

type recordingPanic struct {
	panicking
	server *hook.Server
}

func (p *recordingPanic) Record() *hook.Recording { return p.server.Record("o") }
