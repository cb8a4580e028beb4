package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target"
)

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

func (r *refusing) Check(context.Context, []scenario.Scenario) error { return r.err("check") }
func (r *refusing) Version(context.Context) (string, error)          { return "v1.36.3", nil }
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
				want := `refused because of an error of webhook "theirs.example.com", which this run did not install`
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
