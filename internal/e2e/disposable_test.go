package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
)

// A maker's own API server, which is only for tests, runs the scenarios without isolation, and has nothing of them
// afterwards. Without the flag, they are unsupported there, and the reason says what to do.
func TestDisposable(t *testing.T) {
	t.Parallel()
	server, err := envtest.Start(t.Context(), envtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	before := everythingOf(t, server.Config)
	var some []scenario.Scenario
	open := 0
	for _, s := range catalogue(t) {
		if s.Spec.Isolation == scenario.IsolationNone {
			open++
		}
		if s.Spec.Isolation == scenario.IsolationNone || s.Area == "order" {
			some = append(some, s)
		}
	}
	r, err := engine.Run(t.Context(), engine.Options{Provider: providers.Kubeconfig{Path: kubeconfig, Disposable: true}, Scenarios: some})
	wantAllPass(t, r, err)
	if open == 0 || r.Summary.Pass < open {
		t.Errorf("%v; want %d scenarios without isolation to pass", r.Summary, open)
	}
	wantNothingLeft(t, server.Config)

	r, err = engine.Run(t.Context(), engine.Options{Provider: providers.Kubeconfig{Path: kubeconfig}, Scenarios: some})
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range r.Outcomes {
		if outcome.Verdict == framework.Unsupported && strings.Contains(outcome.Reason, "--disposable") {
			open--
		}
	}
	if open > 0 { // others run alone too
		t.Errorf("%d scenarios without isolation are not unsupported with the flag in their reason", open)
	}
	wantNothingLeft(t, server.Config)
	if left := everythingOf(t, server.Config); !slices.Equal(left, before) {
		t.Errorf("left: %v; before: %v", left, before)
	}
}
