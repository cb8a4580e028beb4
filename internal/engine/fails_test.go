package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// ending is a Provider whose servers with a profile end with an error, or start.
type ending struct {
	countingProvider
	err    error
	target *closable
}

func (e *ending) Start(_ context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile == nil || e.err == nil {
		return e.target, nil
	}
	return nil, e.err
}

// closable is a Target that counts its ends.
type closable struct {
	targettest.Target
	closed int
}

func (c *closable) Close(context.Context) error { c.closed++; return nil }

func (*closable) Info() framework.TargetInfo {
	return framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: "v1.36.3"}
}

// A server that must not start: it passes only if it ends with that text.
func TestServerMustNotStart(t *testing.T) {
	t.Parallel()
	refused := &target.NotStartedError{Log: "I1122 first\nE1122 failed err=\"plugin \\\"X\\\" is unknown\"\n", Err: errors.New("it ended")}
	for name, one := range map[string]struct {
		fails  string
		err    error
		want   framework.Verdict
		reason string
	}{
		"text":               {`plugin "X" is unknown`, refused, framework.Pass, ""},
		"expression":         {`/plugin "[A-Z]" is unknown/`, refused, framework.Pass, ""},
		"another text":       {`plugin "Y" is unknown`, refused, framework.Fail, `plugin "X" is unknown`},
		"another expression": {`/^plugin/`, refused, framework.Fail, `plugin "X" is unknown`},
		"it starts":          {`plugin "X" is unknown`, nil, framework.Fail, "it started"},
		"not its fault":      {`plugin "X" is unknown`, errNotStarted, framework.Errored, errNotStarted.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Metadata: scenario.Metadata{Name: "a.start"}, Spec: scenario.Spec{Level: framework.Must, Server: &scenario.Server{Fails: one.fails}}}
			target := &closable{}
			out, err := Run(t.Context(), Options{Provider: &ending{err: one.err, target: target}, Scenarios: []scenario.Scenario{s}})
			if (err != nil) != (one.want == framework.Errored) {
				t.Errorf("got error %v", err)
			}
			if got := out.Outcomes[0]; got.Verdict != one.want || !strings.Contains(got.Reason, one.reason) {
				t.Errorf("got %s %q; want %s with %q", got.Verdict, got.Reason, one.want, one.reason)
			}
			if (target.closed == 1) != (one.err == nil) {
				t.Errorf("%d targets were closed; want each one that started", target.closed)
			}
		})
	}
}

// A server that does not start with the profile of a scenario: the scenario has no verdict, and the others run.
func TestServerDoesNotStart(t *testing.T) {
	t.Parallel()
	profile := &scenario.Server{FeatureGates: map[string]bool{"Gone": true}, Flags: map[string]string{"gone": "1", "enable-admission-plugins": "Known,GonePlugin"}}
	for name, one := range map[string]struct {
		log    string
		want   framework.Verdict
		reason string
	}{
		"unknown gate":    {`E1126 err="failed: unrecognized feature gate: Gone"`, framework.Unsupported, "feature gate: Gone"},
		"unknown flag":    {"Error: unknown flag: --gone\n", framework.Unsupported, "flag: --gone"},
		"unknown plugin":  {`err="[enable-admission-plugins plugin \"GonePlugin\" is unknown]"`, framework.Unsupported, `"GonePlugin" is unknown`},
		"another gate":    {"unrecognized feature gate: GoneToo", framework.Errored, "did not start"},
		"another flag":    {"unknown flag: --gone-too", framework.Errored, "did not start"},
		"another failure": {"the port is in use", framework.Errored, "it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			started := &target.NotStartedError{Log: one.log, Err: errors.New("it ended")}
			scenarios := []scenario.Scenario{
				{Metadata: scenario.Metadata{Name: "a.start"}, Spec: scenario.Spec{Level: framework.Must, Server: profile}},
				{Metadata: scenario.Metadata{Name: "b.later"}, Spec: scenario.Spec{Level: framework.Must, Server: &scenario.Server{Fails: "port"}}},
			}
			out, err := Run(t.Context(), Options{Provider: &ending{err: started, target: &closable{}}, Scenarios: scenarios})
			if err != nil || len(out.Outcomes) != 2 {
				t.Fatalf("got %d outcomes and error %v", len(out.Outcomes), err)
			}
			if got := out.Outcomes[0]; got.Verdict != one.want || !strings.Contains(got.Reason, one.reason) {
				t.Errorf("got %s %q; want %s with %q", got.Verdict, got.Reason, one.want, one.reason)
			}
			if got := out.Outcomes[1].Verdict; got != framework.Pass && got != framework.Fail {
				t.Errorf("the other scenario: got %s, want a verdict", got)
			}
		})
	}
}
