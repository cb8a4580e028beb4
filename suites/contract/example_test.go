package contract_test

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/suites/contract"
)

// Check returns what Run reports. In a test, write contract.Run(t, subject()).
func ExampleCheck() {
	report := contract.Check(subject(), contract.Only("admit-is-idempotent", "V1", "refusals-are-status-errors"))
	for _, outcome := range report.Outcomes {
		fmt.Println(outcome.Rule, outcome.Verdict)
	}
	// Output:
	// V1 validate-changes-nothing pass
	// A1 admit-is-idempotent inconclusive
	// E1 refusals-are-status-errors pass
}

// The text of a failure begins with the rule and ends with the waiver. Between them are the
// evidence, the reason for the rule, and its sources.
func ExampleOutcome_Text() {
	report := contract.Check(appending(), contract.Only("A1"))
	lines := strings.Split(strings.TrimSpace(report.Outcomes[0].Text("Forbidden")), "\n")
	fmt.Println(lines[0])
	fmt.Println(lines[len(lines)-1])
	// Output:
	// A1 admit-is-idempotent (MUST): Admit is idempotent: called for an object that it has already changed, it changes nothing and does not refuse.
	// if this is intended: contract.Waive("admit-is-idempotent", "why")
}

// A waiver has the name of the rule and the reason.
func ExampleWaive() {
	report := contract.Check(appending(), contract.Only("A1"), contract.Waive("admit-is-idempotent", "the webhook behind it removes duplicates"))
	fmt.Println(report.Outcomes[0].Verdict, report.Outcomes[0].Waiver)
	// Output: skipped the webhook behind it removes duplicates
}

// An unknown rule is misuse. The message suggests a similar name.
func ExampleOnly() {
	report := contract.Check(subject(), contract.Only("admit-is-idempotant"))
	fmt.Println(report.Misuse[0])
	// Output: contract.Only: there is no rule "admit-is-idempotant"; did you mean "admit-is-idempotent"?; contract.Rules lists all rules
}

// An adapter of a test framework creates a Plan, declares a test for each rule, and checks
// the rule when the test runs.
func ExampleNewPlan() {
	plan := contract.NewPlan(subject(), contract.Only("V1", "K4"))
	for _, misuse := range plan.Misuse() {
		fmt.Println(misuse)
	}
	for _, rule := range plan.Rules() {
		fmt.Println(rule, plan.Check(rule).Verdict)
	}
	// Output:
	// V1 validate-changes-nothing pass
	// K4 registers-one-name pass
}
