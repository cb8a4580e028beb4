package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// countingTarget counts the Sandboxes that were created, and what was installed and uninstalled
// in them.
type countingTarget struct {
	targettest.Target
	sandboxes, installed, uninstalled atomic.Int32
}

func (*countingTarget) RunID() string { return "abcdefghij" }

func (t *countingTarget) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	t.sandboxes.Add(1)
	return countingSandbox{target: t}, nil
}

type countingSandbox struct {
	targettest.Sandbox
	target *countingTarget
}

func (s countingSandbox) Install(context.Context, map[string]any, map[string]hook.Script) error {
	s.target.installed.Add(1)
	return nil
}

func (s countingSandbox) Uninstall(context.Context) error {
	s.target.uninstalled.Add(1)
	return nil
}

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

// What a PolicyTest gives is installed, and uninstalled, once for all its cases. Each case has an outcome.
func TestPolicyTestIsArrangedOnce(t *testing.T) {
	t.Parallel()
	manifest := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
	}
	when := []scenario.Step{{Create: manifest("a")}}
	one := func(name string, given ...map[string]any) scenario.Scenario {
		return scenario.Scenario{Metadata: scenario.Metadata{Name: name}, Spec: scenario.Spec{Level: framework.Must, Given: given}}
	}
	table := func(s scenario.Scenario, cases ...string) scenario.Scenario {
		for _, name := range cases {
			s.Cases = append(s.Cases, scenario.Case{Name: name, When: when})
		}
		return s
	}
	plain := one("c.alone", manifest("x"))
	plain.Spec.When = when
	exclusive := table(one("d", manifest("x")), "d.one", "d.two")
	exclusive.Spec.Exclusive = true
	target := &countingTarget{}
	out, err := Run(t.Context(), Options{
		Provider: &countingStarter{target: target},
		Scenarios: []scenario.Scenario{
			table(one("a", manifest("x"), manifest("y")), "a.one", "a.skipped", "a.two"), table(one("b", manifest("x")), "b.one", "b.two"), plain, exclusive,
		},
		Skip: map[string]string{"a.skipped": "not today"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]framework.Verdict{
		"a.one": framework.Pass, "a.skipped": framework.Skipped, "a.two": framework.Pass, "b.one": framework.Pass,
		"b.two": framework.Pass, "c.alone": framework.Pass, "d.one": framework.Pass, "d.two": framework.Pass,
	}
	got := verdicts(out)
	for name, verdict := range got {
		if verdict == framework.Inconclusive { // the version of the target is not known
			got[name] = framework.Pass
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got)\n%s", diff)
	}
	// The last wave is not uninstalled: the API server ends.
	counted := []int32{target.sandboxes.Load(), target.installed.Load(), target.uninstalled.Load()}
	if diff := cmp.Diff([]int32{4, 2 + 1 + 1 + 1, 3}, counted); diff != "" {
		t.Errorf("sandboxes, installed objects, uninstalled sandboxes (-want +got)\n%s", diff)
	}
}

// halfTarget cannot install MutatingAdmissionPolicies.
type halfTarget struct{ countingTarget }

func (t *halfTarget) NewSandbox(context.Context, target.SandboxOptions) (target.Sandbox, error) {
	return halfSandbox{countingSandbox{target: &t.countingTarget}}, nil
}

type halfSandbox struct{ countingSandbox }

func (s halfSandbox) Install(ctx context.Context, manifest map[string]any, scripts map[string]hook.Script) error {
	if manifest["kind"] == "MutatingAdmissionPolicy" {
		return errors.New("no such kind")
	}
	return s.countingSandbox.Install(ctx, manifest, scripts)
}

type halfProvider struct {
	countingProvider
	target *halfTarget
}

func (p *halfProvider) Start(context.Context, target.StartOptions) (target.Target, error) {
	return p.target, nil
}

// What a scenario installed before its setup failed is removed with its wave: another run would wait for it.
func TestUninstallsWhatFailed(t *testing.T) {
	bad := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": "p"}}
	var all []scenario.Scenario
	for i, given := range [][]map[string]any{{webhookConfiguration("a.example.com"), bad}, {bad}, {webhookConfiguration("b.example.com")}, {webhookConfiguration("c.example.com")}} {
		all = append(all, scenario.Scenario{Metadata: scenario.Metadata{Name: fmt.Sprintf("a.%d", i)}, Spec: scenario.Spec{Level: framework.Must, Given: given, Exclusive: i == 3}})
	}
	on := &halfTarget{}
	r, err := Run(t.Context(), Options{Provider: &halfProvider{target: on}, Scenarios: all, Isolate: true})
	if err != nil || r.Summary.Error != 2 || r.Summary.Pass != 2 {
		t.Fatalf("%s, %v", r.Summary, err)
	}
	if got := on.uninstalled.Load(); got != 2 { // not the one with nothing installed, and Close removes the last wave
		t.Errorf("%d scenarios were uninstalled; want the one that failed and the first one that passed", got)
	}
}
