package report_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/report"
)

// The comparison in Markdown has the claims, the areas, and why something did not pass, with equal causes together.
func TestMatrixMarkdown(t *testing.T) {
	outcome := func(name string, verdict framework.Verdict, reason string) report.Outcome {
		area, _, _ := strings.Cut(name, ".")
		return report.Outcome{Name: name, Area: area, Level: framework.Must, Verdict: verdict, Reason: reason}
	}
	whole, part := report.New(framework.TargetInfo{Kind: "envtest", ServerVersion: "v1.37.2"}), report.New(framework.TargetInfo{Kind: "kubeconfig", ServerVersion: "v1.37.0"})
	part.Implementation = &framework.Implementation{Project: "Mine | `x`"}
	whole.Outcomes = []report.Outcome{outcome("a.one", framework.Pass, ""), outcome("a.two", framework.Pass, ""), outcome("b.one", framework.Pass, "")}
	part.Outcomes = []report.Outcome{
		outcome("a.one", framework.Fail, "got <b>\nmore"), outcome("a.two", framework.Pass, ""), outcome("b.one", framework.Inconclusive, "alone"),
		outcome("b.two", framework.Unsupported, "it does not serve v1 Pod"), outcome("c.one", framework.Unsupported, "it does not serve v1 Pod"),
	}
	part.Incomplete = "the API server is gone"
	part.Outcomes = append(part.Outcomes, report.Outcome{Name: "c.two", Area: "c", Verdict: framework.Errored, Reason: "not reached", NotReached: true})
	servers := []report.Server{
		{Report: whole, Claims: []report.Claim{{Profile: "webhooks", Verdict: report.Conformant, Requirements: 3, Passed: 3}}},
		{Report: part, Claims: []report.Claim{{Profile: "policies", Verdict: report.NotConformant, Requirements: 4, Passed: 1}}},
	}
	for i := range servers {
		servers[i].Report.Summary = report.Count(servers[i].Report.Outcomes)
	}
	var text strings.Builder
	if err := report.NewMatrix(servers).WriteMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/matrix.md", text.String())
}
