package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// limited is a Provider and a Target whose API server never uses one kind of configuration, or lacks something.
type limited struct {
	unsteady
	never string
	lacks target.Lacks
	other bool // it has other clients

	mu    sync.Mutex
	waits int // for the kind
}

func (s *limited) Start(context.Context, target.StartOptions) (target.Target, error) {
	return limitedTarget{unsteadyTarget{targettest.Target{Sandbox: s}, &s.unsteady}, s}, nil
}

type limitedTarget struct {
	unsteadyTarget
	s *limited
}

func (t limitedTarget) Optional() target.Optional {
	optional := target.Optional{Lacks: func() target.Lacks { return t.s.lacks }}
	if t.s.other {
		optional.Confined = func(string, framework.Request) error { return nil }
	}
	return optional
}

func (t limitedTarget) WaitUntilEffective(_ context.Context, manifests []map[string]any) error {
	if !slices.Contains(admissionKinds(manifests), t.s.never) {
		return nil
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.waits++
	return fmt.Errorf("wait: %w after 45s", framework.ErrTimeout)
}

// installs returns a scenario that is given a configuration of a kind.
func installs(name, kind string) scenario.Scenario {
	s := read(name)
	s.Spec.Given = []map[string]any{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "a"}}}
	return s
}

// stages is a Progress that notes the stages of a run.
type stages struct {
	mu  sync.Mutex
	all []string
}

func (s *stages) Stage(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, text)
}

func (*stages) Done(report.Outcome) {}

// A configuration that is never effective costs the scenarios that install such a one, and no others. After two waits the
// kind is not waited for again.
func TestNotEffective(t *testing.T) {
	t.Parallel()
	var all []scenario.Scenario
	for n := range 3 {
		for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingWebhookConfiguration"} {
			one := installs(fmt.Sprintf("a.%s-%d", strings.ToLower(kind), n), kind)
			one.Spec.Exclusive = true // each has a wave
			all = append(all, one)
		}
	}
	all = append(all, read("a.z"))
	on, shown := &limited{never: "MutatingAdmissionPolicy"}, &stages{}
	r, err := Run(t.Context(), Options{Provider: on, Scenarios: all, Progress: shown})
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, outcome := range r.Outcomes {
		want := framework.Pass
		if strings.Contains(outcome.Name, "mutating") {
			want = framework.Inconclusive
		}
		if outcome.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", outcome.Name, outcome.Verdict, want, outcome.Reason)
		}
		if strings.Contains(outcome.Reason, "any MutatingAdmissionPolicy in time, 2 times") {
			given++
		}
	}
	if on.waits > 8 || given < 1 {
		t.Errorf("%d waits, %d scenarios given up; want few waits, and 1", on.waits, given)
	}
	if slices.ContainsFunc(shown.all, func(stage string) bool { return strings.Contains(stage, " 0 scenarios") }) {
		t.Errorf("the progress says what happens with no scenario:\n%s", strings.Join(shown.all, "\n"))
	}
}

// What an API server lacks costs the scenarios that need it.
func TestLacks(t *testing.T) {
	t.Parallel()
	warned, user := read("a.warned"), read("a.user")
	warned.Spec.When[0].Then = &scenario.Expectation{Warnings: []any{}}
	user.Spec.When[0].As = &framework.User{Name: "jane"}
	admitted := read("a.admitted")
	for feature, unsupported := range map[target.Feature]string{
		target.Warnings: "a.warned", target.Impersonation: "a.user", target.DeleteCollection: "", target.Narrowing: "",
	} {
		t.Run(string(feature), func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Options{Provider: &limited{lacks: target.Lacks{feature: "seen"}}, Scenarios: []scenario.Scenario{warned, user, admitted}})
			if err != nil {
				t.Fatal(err)
			}
			for _, outcome := range r.Outcomes {
				want := framework.Pass
				if outcome.Name == unsupported {
					want = framework.Unsupported
				}
				if outcome.Verdict != want || want == framework.Unsupported && outcome.Reason != "needs "+string(feature)+", which this API server lacks: seen" {
					t.Errorf("%s: %s, want %s: %s", outcome.Name, outcome.Verdict, want, outcome.Reason)
				}
			}
		})
	}
	_, err := Run(t.Context(), Options{Provider: &limited{lacks: target.Lacks{target.Narrowing: "seen"}, other: true}, Scenarios: []scenario.Scenario{admitted}})
	if err == nil || !strings.Contains(err.Error(), "their requests would be touched: seen") {
		t.Errorf("got %v, want an error: the API server has other clients", err)
	}
}
