package doctor

import "testing"

// TestFindingGatekeeper reproduces a finding of docs/findings.md: a rule of gatekeeper names pods/exec without CONNECT.
func TestFindingGatekeeper(t *testing.T) {
	report := judge(t, "testdata/found/gatekeeper.yaml")
	if len(report.Findings) != 1 || report.Findings[0].Rule != "CF-MATCH-3" || report.Findings[0].Severity != Warning {
		t.Errorf("got %s", report.Text(true))
	}
}
