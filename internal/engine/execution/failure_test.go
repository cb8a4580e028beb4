package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		"503":                            {Failure{result: response(503, ""), mismatches: code}, true},
		"503 as expected":                {Failure{result: response(503, ""), mismatches: []expect.Mismatch{{Path: "message"}}, expect: &scenario.Expectation{Code: scenario.OneOrMore[int]{503}}}, false},
		"a refusal expected":             {Failure{result: response(504, ""), mismatches: []expect.Mismatch{{Path: "calls[0]"}}}, true},
		"403":                            {Failure{result: response(403, ""), mismatches: code}, false},
		"no roles yet":                   {Failure{result: response(403, `validatingwebhookconfigurations is forbidden: User "a" cannot create resource "validatingwebhookconfigurations"`), mismatches: code}, true},
		"no roles yet, but 403 expected": {Failure{result: response(403, `configmaps is forbidden: User "a" cannot create resource "configmaps"`), mismatches: []expect.Mismatch{{Path: "calls[0]"}}}, true},
		"plugin not ready":               {Failure{result: response(403, `configmaps "a" is forbidden: not yet ready to handle request`), mismatches: code}, true},
		"a webhook that says so":         {Failure{result: response(403, `admission webhook "a" denied the request: b is forbidden: User "a" cannot create`), mismatches: code}, false},
		"refused by a policy":            {Failure{result: response(503, "ValidatingAdmissionPolicy 'a' denied request"), mismatches: code}, false},
		"no audit event":                 {Failure{expect: &scenario.Expectation{Audit: map[string]any{}}, mismatches: []expect.Mismatch{{Path: "audit"}}}, true},
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
	refused := &Failure{action: "a", result: response(500, `failed calling webhook "a": context deadline exceeded`), mismatches: []expect.Mismatch{{Path: "code"}}}
	lost := &Failure{action: "b", Err: framework.ErrNoResponse}
	if got := ofParallel([]*Failure{nil, refused, lost}); got != lost || got.action != "parallel[2] b" {
		t.Errorf("got %v, want the lost request", got)
	}
	if got := ofParallel([]*Failure{nil, refused}); got != refused || got.action != "parallel[1] a" {
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
