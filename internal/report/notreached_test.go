package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Scenarios that were not reached are listed together, after the failures.
func TestNotReachedTogether(t *testing.T) {
	lost := func(area, name string) report.Outcome {
		return report.Outcome{Area: area, Name: name, Level: framework.Must, Verdict: framework.Errored, Reason: "not reached: gone", NotReached: true}
	}
	r := report.Report{Incomplete: "gone", Outcomes: []report.Outcome{
		lost("order", "order.a"), lost("order", "order.b"), lost("wire", "wire.a"),
		{Area: "wire", Name: "wire.b", Level: framework.Must, Verdict: framework.Errored, Reason: "other"},
	}}
	for verbose, want := range map[bool]string{
		false: "\nerror  3 not reached\n  2 of area order\n  wire.a\n",
		true:  "\nerror  3 not reached\n  order.a\n  order.b\n  wire.a\n",
	} {
		t.Run(fmt.Sprintf("verbose %t", verbose), func(t *testing.T) {
			var text strings.Builder
			if err := report.WriteConsole(&text, r, report.ConsoleOptions{Verbose: verbose}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "error  wire.b  MUST\n") {
				t.Errorf("verbose %t: lacks %q or wire.b:\n%s", verbose, want, &text)
			}
		})
	}
}
