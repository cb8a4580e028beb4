package report_test

import (
	"fmt"
	"os"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

func ExampleWriteConsole() {
	r := report.New(framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: "v1.36.3"})
	r.Outcomes = []report.Outcome{{Name: "order.mutating-first", Area: "order", Level: framework.Must, Verdict: framework.Pass}}
	if err := report.WriteConsole(os.Stdout, r, report.ConsoleOptions{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exit", r.ExitCode(false))
	// Output:
	// target envtest, API server v1.36.3
	//
	// order  1 pass
	//
	// 1 scenario: 1 pass, 0 fail, 0 unsupported, 0 skipped, 0 inconclusive, 0 error (target ready in 0.0 s, catalogue in 0.0 s, total 0.0 s): PASS
	// exit 0
}
