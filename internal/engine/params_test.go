package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

// blindTarget has Sandboxes whose policies do not see their parameters: before the first step, or only
// after the first request.
type blindTarget struct{ countingTarget }

type blindSandbox struct {
	countingSandbox
	sees, sent int
}

func (t *blindTarget) NewSandbox(_ context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	sandbox := &blindSandbox{countingSandbox: countingSandbox{target: &t.countingTarget}, sees: 100}
	switch {
	case strings.HasSuffix(options.ID, "-00001"):
		sandbox.sees = 0
	case strings.HasSuffix(options.ID, "-00002"):
		sandbox.sees = 1
	}
	return sandbox, nil
}

func (s *blindSandbox) WaitForParams(context.Context) error {
	if s.sent++; s.sent > s.sees {
		return fmt.Errorf("%w after 10s: the parameter is not seen (an issue)", framework.ErrTimeout)
	}
	return nil
}

// blindProvider is a Provider of a blindTarget.
type blindProvider struct {
	countingProvider
	target *blindTarget
}

func (p *blindProvider) Start(context.Context, target.StartOptions) (target.Target, error) {
	return p.target, nil
}

// If policies do not see a parameter, nothing is known about the scenario. It sends no more requests, and
// the others go on.
func TestParamsNotSeen(t *testing.T) {
	t.Parallel()
	step := scenario.Step{Create: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	var all []scenario.Scenario
	for _, name := range []string{"a.none", "b.first", "c.every"} {
		all = append(all, scenario.Scenario{Metadata: scenario.Metadata{Name: name}, Lines: []int{7, 8}, Spec: scenario.Spec{Level: framework.Must, When: []scenario.Step{step, step}}})
	}
	out, err := Run(t.Context(), Options{Provider: &blindProvider{countingProvider{version: "v1.36.3"}, &blindTarget{}}, Scenarios: all})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range []string{
		"step 1 (line 7): before it: timed out after 10s: the parameter is not seen (an issue)",
		"step 2 (line 8): before it: timed out after 10s: the parameter is not seen (an issue)",
	} {
		if got := out.Outcomes[at]; got.Verdict != framework.Inconclusive || got.Reason != want || got.Repeated != 0 {
			t.Errorf("got %s: %s, want inconclusive: %s", got.Verdict, got.Reason, want)
		}
	}
	if got := out.Outcomes[2]; got.Reason != "" && strings.Contains(got.Reason, "parameter") {
		t.Errorf("the other scenario: got %s: %s", got.Verdict, got.Reason)
	}
}
