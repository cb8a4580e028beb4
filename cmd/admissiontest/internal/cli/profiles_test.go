package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// submitted writes the report of a run of the whole catalogue, in which everything passed, after a change.
func submitted(t *testing.T, change func(*report.Report)) string {
	t.Helper()
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	r := report.New(framework.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: "v1.37.2"})
	for _, s := range all {
		outcome := report.Outcome{Name: s.Metadata.Name, Area: s.Area, Level: s.Spec.Level, Requirement: s.Spec.Requirement, Verdict: framework.Pass}
		if reason := engine.OtherMinor(s, "v1.37.2"); reason != "" {
			outcome.Verdict, outcome.Reason = framework.Unsupported, reason
		}
		r.Outcomes = append(r.Outcomes, outcome)
	}
	change(&r)
	r.Summary = report.Count(r.Outcomes)
	dir := t.TempDir()
	if err := report.SaveDir(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

// failFirst makes a MUST of area order fail.
func failFirst(r *report.Report) {
	for i, outcome := range r.Outcomes {
		if outcome.Area == "order" && outcome.Level == framework.Must && !strings.HasPrefix(outcome.Name, "order.plugins") {
			r.Outcomes[i].Verdict, r.Outcomes[i].Reason = framework.Fail, "it does not"
			return
		}
	}
}

func TestBadge(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*report.Report)
		message, color string
	}{
		"conformant": {func(*report.Report) {}, "conformant, 1.37", "brightgreen"},
		"fails":      {failFirst, "not conformant, 1.37", "red"},
		"cut":        {func(r *report.Report) { r.Outcomes = r.Outcomes[200:] }, "partial, 1.37", "yellow"},
	} {
		t.Run(name, func(t *testing.T) {
			got := onCatalogue(t.Context(), "report", "badge", submitted(t, test.change), "--profile", "webhooks")
			got.check(t, exitPass)
			var badge struct {
				SchemaVersion         int
				Label, Message, Color string
			}
			if err := json.Unmarshal([]byte(got.stdout), &badge); err != nil || badge.SchemaVersion != 1 || badge.Label != "Kubernetes admission: webhooks" ||
				badge.Message != test.message || badge.Color != test.color {
				t.Errorf("badge %+v, %v", badge, err)
			}
		})
	}
	onCatalogue(t.Context(), "report", "badge", submitted(t, failFirst), "--profile", "webhook").check(t, exitUsage, `did you mean "webhooks"?`)
	onCatalogue(t.Context(), "report", "badge").check(t, exitUsage, "takes one DIR or FILE")
	onCatalogue(t.Context(), "run", "--profile", "webhooks", "order").check(t, exitUsage, `--profile webhooks cannot be combined with "order"`)
	onCatalogue(t.Context(), "run", "--profile", "polices").check(t, exitUsage, `did you mean "policies"?`)
}

func TestVerifyReport(t *testing.T) {
	right := onCatalogue(t.Context(), "report", "verify", submitted(t, func(*report.Report) {}))
	right.check(t, exitPass)
	wrong := onCatalogue(t.Context(), "report", "verify", submitted(t, func(r *report.Report) {
		r.Claim = &report.Claim{Profile: "webhooks", Kubernetes: "1.37", Verdict: report.Conformant, Requirements: 1, Passed: 1}
		r.Outcomes[0].Name = "order.of-my-own"
	}))
	wrong.check(t, exitFail)
	if !strings.Contains(wrong.stdout, `no requirement "order.of-my-own"`) || !strings.Contains(wrong.stdout, "claim: it says ") {
		t.Errorf("standard output:\n%s", wrong.stdout)
	}
}

func TestMatrix(t *testing.T) {
	got := onCatalogue(t.Context(), "report", "matrix", submitted(t, func(*report.Report) {}), submitted(t, failFirst))
	got.check(t, exitPass)
	for _, want := range []string{"API servers compared", "not conformant", "it does not", "aggregated"} {
		t.Run(want, func(t *testing.T) {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("the page lacks %q", want)
			}
		})
	}
}
