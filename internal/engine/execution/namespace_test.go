package execution

import (
	"context"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// waitingTarget counts the waits.
type waitingTarget struct {
	targettest.Target
	waits int
}

func (t *waitingTarget) WaitUntilEffective(_ context.Context, manifests []map[string]any) error {
	if len(manifests) != 1 || manifests[0]["kind"] != "Namespace" {
		return framework.ErrTimeout
	}
	t.waits++
	return nil
}

// After a step that changes a namespace, the next step waits until the API server acts on its labels.
func TestChangedNamespace(t *testing.T) {
	const version = "v1"
	namespace := scenario.ObjectReference{APIVersion: version, Kind: "Namespace", Name: "kube-public"}
	patch := scenario.Step{Patch: &scenario.Patch{ObjectReference: namespace, Merge: map[string]any{}}}
	dry := patch
	dry.DryRun = true
	for name, test := range map[string]struct {
		step  scenario.Step
		inner bool
		waits int
	}{
		"patch":     {patch, false, 1},
		"dry run":   {dry, false, 0},
		"meanwhile": {patch, true, 0},
		"get":       {scenario.Step{Get: &namespace}, false, 0},
		"other":     {scenario.Step{Patch: &scenario.Patch{ObjectReference: scenario.ObjectReference{APIVersion: version, Kind: "ConfigMap", Name: "a"}, Merge: map[string]any{}}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := &fakeSandbox{}
			target := &waitingTarget{Target: targettest.Target{Sandbox: sandbox}}
			c := caseOn(sandbox)
			c.target, c.inner = target, test.inner
			if failed := c.step(t.Context(), test.step); failed != nil || target.waits != test.waits {
				t.Errorf("%d waits, %v; want %d", target.waits, failed, test.waits)
			}
		})
	}
}
