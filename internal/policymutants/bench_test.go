package policymutants

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/internal/report"
)

// BenchmarkMutate is --mutants of one policy with three samples, on an API server that runs. The 49 mutants of the
// policy are half of what the default allows.
func BenchmarkMutate(b *testing.B) {
	server, err := envtest.Start(b.Context(), envtest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	}()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		b.Fatal(err)
	}
	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/full.yaml")
	if err != nil {
		b.Fatal(err)
	}
	samples := []string{"full.a", "full.c", "full.none"}
	options := engine.Options{
		Scenarios: scenario.Keep(scenarios, func(s scenario.Scenario) bool { return slices.Contains(samples, s.Metadata.Name) }),
		Provider:  providers.Kubeconfig{Path: kubeconfig, Disposable: true},
	}
	var before report.Report
	for _, name := range samples {
		before.Outcomes = append(before.Outcomes, report.Outcome{Name: name, Verdict: framework.Pass})
	}
	for b.Loop() {
		if got, err := Mutate(b.Context(), options, MutateOptions{Most: 100, Before: before}); err != nil || got[0].Noticed == 0 || got[0].Unjudged > 0 {
			b.Fatal(got, err)
		}
	}
}
