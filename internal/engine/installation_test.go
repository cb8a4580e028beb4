package engine

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/target"
)

// countingTarget counts the Sandboxes that were created, and what was installed and uninstalled
// in them.
type countingTarget struct {
	fakeTarget
	sandboxes, installed, uninstalled atomic.Int32
}

func (*countingTarget) RunID() string               { return "abcdefghij" }
func (*countingTarget) Close(context.Context) error { return nil }

func (t *countingTarget) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	t.sandboxes.Add(1)
	return countingSandbox{target: t}, nil
}

type countingSandbox struct {
	target.Sandbox
	target *countingTarget
}

func (s countingSandbox) Install(context.Context, map[string]any, map[string]hook.Script) error {
	s.target.installed.Add(1)
	return nil
}

func (countingSandbox) WaitForParams(context.Context) error { return nil }

func (s countingSandbox) Uninstall(context.Context) error {
	s.target.uninstalled.Add(1)
	return nil
}

func (countingSandbox) Store(context.Context, map[string]any) error        { return nil }
func (countingSandbox) RemoveStored(context.Context, map[string]any) error { return nil }

func (countingSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	var result framework.Result
	result.Status.Code = 201
	return result, nil
}

// countingStarter is a Provider of a countingTarget.
type countingStarter struct {
	countingProvider
	target *countingTarget
}

func (p *countingStarter) Start(context.Context, target.StartOptions) (target.Target, error) {
	return p.target, nil
}

// Scenarios of one Installation share a Sandbox, in which their objects are installed once. Others
// have their own.
func TestInstallations(t *testing.T) {
	t.Parallel()
	manifest := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
	}
	one := func(name, installation string, given ...map[string]any) scenario.Scenario {
		return scenario.Scenario{
			Metadata: scenario.Metadata{Name: name}, Installation: installation,
			Spec: scenario.Spec{Level: framework.Must, Given: given, When: []scenario.Step{{Create: manifest("a")}}},
		}
	}
	target := &countingTarget{}
	out, err := Run(t.Context(), Options{
		Provider: &countingStarter{target: target},
		Scenarios: []scenario.Scenario{
			one("a.one", "file#0/0", manifest("x"), manifest("y")), one("a.skipped", "file#0/0", manifest("x"), manifest("y")),
			one("a.two", "file#0/0", manifest("x"), manifest("y")), one("b.one", "file#0/1", manifest("x")),
			one("b.two", "file#0/1", manifest("x")), one("c.alone", "", manifest("x")), one("d.alone", "", manifest("x")),
		},
		Skip: map[string]string{"a.skipped": "not today"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]framework.Verdict{
		"a.one": framework.Pass, "a.skipped": framework.Skipped, "a.two": framework.Pass, "b.one": framework.Pass,
		"b.two": framework.Pass, "c.alone": framework.Pass, "d.alone": framework.Pass,
	}
	for name, verdict := range verdicts(out) {
		if verdict == framework.Inconclusive { // the version of the target is not known
			verdict = framework.Pass
		}
		if verdict != want[name] {
			t.Errorf("%s: got %s, want %s", name, verdict, want[name])
		}
	}
	counted := []int32{target.sandboxes.Load(), target.installed.Load()}
	if diff := cmp.Diff([]int32{4, 2 + 1 + 1 + 1}, counted); diff != "" {
		t.Errorf("sandboxes and installed objects (-want +got)\n%s", diff)
	}
}

// What installs for several cases is uninstalled once.
func TestUninstallShared(t *testing.T) {
	t.Parallel()
	target := &countingTarget{}
	var cases []*execution.Case
	r := &groupRun{run: &run{options: Options{Parallel: 2}}, target: target}
	for _, number := range []int{1, 1, 2, 1} {
		c, err := r.newCase(scenario.Scenario{}, number)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Arrange(t.Context()); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := r.uninstall(t.Context(), cases); err != nil || target.uninstalled.Load() != 2 {
		t.Errorf("got %d uninstalled, error %v; want 2", target.uninstalled.Load(), err)
	}
}
