package contract

import (
	"flag"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// Check checks the rules as Run does, and returns the results. Use Check instead of [Run] to write your own
// report, for example.
func Check(subject Subject, options ...Option) Report {
	plan := NewPlan(subject, options...)
	report := Report{Subject: subject.Name, Misuse: plan.Misuse()}
	outcome := check.Ahead(plan)
	for i := range plan.Rules() {
		report.Outcomes = append(report.Outcomes, outcome(i))
	}
	return report
}

// Run checks each rule in a subtest of t with a name such as A1_admit-is-idempotent. A subtest
// fails if the plugin breaks the rule or the Subject lacks a request that the rule needs. It is
// skipped if the rule is waived, does not apply to the plugin, or is not reached by any request. If no plugin can be
// built, that is the only error, and no rule is checked.
//
// Unless -run or -skip selects subtests, Run checks several rules at the same time, each with its own plugins and Worlds.
// It checks a rule that fails again, alone. The functions of the Subject are then called by several goroutines.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	if subject.Name == "" {
		subject.Name = t.Name()
	}
	plan := NewPlan(subject, options...)
	for _, misuse := range plan.Misuse() {
		t.Error(misuse)
	}
	if check.Broken(plan) {
		return
	}
	outcomeOf := func(i int) Outcome { return plan.Check(plan.Rules()[i]) }
	if !selectsSubtests() {
		outcomeOf = check.Ahead(plan)
	}
	count := map[framework.Verdict]int{}
	for i, each := range plan.Rules() {
		t.Run(each.String(), func(t *testing.T) {
			outcome := outcomeOf(i)
			count[outcome.Verdict]++
			rule.Tell(t, outcome.Verdict, outcome.Text(subject.Name))
		})
	}
	t.Log(rule.Summary(count))
}

// selectsSubtests reports whether flags of go test, such as -run TestContract/A1, can select a part of the rules. Each
// rule is then checked when its subtest runs.
func selectsSubtests() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if set := flag.Lookup(name); set != nil && strings.Contains(set.Value.String(), "/") {
			return true
		}
	}
	return false
}
