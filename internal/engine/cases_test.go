package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	r, err := Run(t.Context(), Options{Provider: &halfProvider{target: on}, Scenarios: all, Parallel: 1})
	if err != nil || r.Summary.Error != 2 || r.Summary.Pass != 2 {
		t.Fatalf("%s, %v", r.Summary, err)
	}
	if got := on.uninstalled.Load(); got != 2 { // not the one with nothing installed, and Close removes the last wave
		t.Errorf("%d scenarios were uninstalled; want the one that failed and the first one that passed", got)
	}
}

// refusing is a Provider, and a Target with other clients, that refuses one kind of request with a message.
type refusing struct {
	countingTarget
	what, message string
	requests      atomic.Int32
}

func (r *refusing) err(what string) error {
	r.requests.Add(1)
	if r.what != what {
		return nil
	}
	return fmt.Errorf("do it: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Message: r.message}})
}

func (r *refusing) Check(context.Context) error             { return r.err("check") }
func (r *refusing) Version(context.Context) (string, error) { return "v1.36.3", nil }
func (r *refusing) Start(_ context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	return r, r.err("start")
}

func (r *refusing) InstallForRun(context.Context, []map[string]any) error {
	return r.err("install for run")
}

func (r *refusing) WaitUntilEffective(_ context.Context, manifests []map[string]any) error {
	if len(manifests) == 0 {
		return nil
	}
	return r.err("fence")
}

func (r *refusing) NewSandbox(_ context.Context, options target.SandboxOptions) (target.Sandbox, error) {
	return refusingSandbox{countingSandbox{target: &r.countingTarget}, r}, r.err("sandbox")
}

func (r *refusing) Optional() target.Optional {
	return target.Optional{
		Confined: func(string, framework.Request) error { return nil },
		Prepare:  func(context.Context) error { return r.err("prepare") },
		Foreign:  func(context.Context) ([]map[string]any, error) { return nil, nil },
	}
}

type refusingSandbox struct {
	countingSandbox
	by *refusing
}

func (s refusingSandbox) Install(context.Context, map[string]any, map[string]hook.Script) error {
	return s.by.err("install")
}

func (s refusingSandbox) Uninstall(context.Context) error { return s.by.err("uninstall") }

// A refusal by what another client installed loses no run: the scenarios are inconclusive, with one reason,
// and those that are skipped or cannot run there remain so. If nothing can run, nothing else is tried.
func TestForeignRefusals(t *testing.T) {
	t.Parallel()
	const message = `failed calling webhook "theirs.example.com": no route to host`
	given := scenario.Spec{Level: framework.Must, Given: []map[string]any{webhookConfiguration("own.example.com")}}
	var all []scenario.Scenario
	for i := range 40 {
		all = append(all, scenario.Scenario{Metadata: scenario.Metadata{Name: fmt.Sprintf("a.%02d", i)}, Spec: given})
	}
	open := scenario.Scenario{Metadata: scenario.Metadata{Name: "b.open"}, Spec: scenario.Spec{Level: framework.Must, Isolation: scenario.IsolationNone}}
	all = append(all, open, scenario.Scenario{Metadata: scenario.Metadata{Name: "c.skipped"}, Spec: given})
	for what, limit := range map[string]int32{"check": 6, "start": 3, "install for run": 6, "prepare": 8, "sandbox": 50, "install": 100, "fence": 100} {
		t.Run(what, func(t *testing.T) {
			on := &refusing{what: what, message: message}
			out, err := Run(t.Context(), Options{Provider: on, Scenarios: all, Install: project(t), Skip: map[string]string{"c.skipped": "not today"}})
			if err != nil || on.requests.Load() > limit {
				t.Errorf("got %v after %d requests; want no error, and at most %d", err, on.requests.Load(), limit)
			}
			if out.Summary.Inconclusive < 40 || out.Summary.Skipped != 1 || out.Summary.Fail+out.Summary.Error+out.Summary.Pass != 0 || out.ExitCode(false) != 5 {
				t.Errorf("got %s, exit code %d", out.Summary, out.ExitCode(false))
			}
			for _, outcome := range out.Outcomes {
				want := `refused by webhook "theirs.example.com", which this run did not install`
				if outcome.Verdict == framework.Inconclusive && outcome.Reason != want {
					t.Errorf("%s: got %s", outcome.Name, outcome.Reason)
				}
			}
		})
	}
	// What refuses belongs to a scenario.
	own := &refusing{what: "fence", message: strings.Replace(message, "theirs", "own", 1)}
	if out, err := Run(t.Context(), Options{Provider: own, Scenarios: all}); err == nil || out.Summary.Inconclusive != 0 {
		t.Errorf("refused by a webhook of the run: got %v, %s; want an error", err, out.Summary)
	}
}

func webhookConfiguration(name string) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "c"}, "webhooks": []any{map[string]any{"name": name}},
	}
}

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
