package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// What a server sends cannot reach the command parser of GitHub Actions.
func TestNoCommands(t *testing.T) {
	const hostile = "no\n::error::a\r::error::b\n\t ::stop-commands::c\u2028::d ##[group]e"
	outcome := report.Outcome{
		Name: "mine.a", Area: "::mine", Level: framework.Must, Verdict: framework.Fail, Requirement: hostile, Source: []string{"::source"},
		Evidence: &report.Evidence{
			Response: hostile, Mismatches: []report.Mismatch{{Path: "message", Expected: hostile, Actual: hostile}},
			Timeline: []report.TimelineEntry{{Summary: hostile}},
		},
	}
	r := report.Report{Outcomes: []report.Outcome{outcome, {Name: "::b", Level: framework.Must, Verdict: framework.Errored, NotReached: true}}, Incomplete: hostile}
	var console, document strings.Builder
	if err := report.WriteConsole(&console, r, report.ConsoleOptions{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJSON(&document, r); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"console": console.String(), "failure": report.FailureText(outcome), "JSON": document.String()} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(text, "##[") {
				t.Errorf("%s has ##[:\n%s", name, text)
			}
			for line := range strings.SplitSeq(strings.NewReplacer("\r", "\n", "\u2028", "\n").Replace(text), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "::") {
					t.Errorf("%s has a command: %q", name, line)
				}
			}
		})
	}
	var back report.Report
	if err := json.Unmarshal([]byte(document.String()), &back); err != nil || back.Incomplete != hostile {
		t.Errorf("JSON does not read back: %q, %v", back.Incomplete, err)
	}
}
