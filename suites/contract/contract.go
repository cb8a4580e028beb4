package contract

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// Check checks the rules and returns the results. Use Check instead of [Run] to write your own
// report, for example.
func Check(subject Subject, options ...Option) Report {
	plan := NewPlan(subject, options...)
	report := Report{Subject: subject.Name, Misuse: plan.Misuse()}
	for _, rule := range plan.Rules() {
		report.Outcomes = append(report.Outcomes, plan.Check(rule))
	}
	return report
}

// Run checks each rule in a subtest of t with a name such as A1_admit-is-idempotent. A subtest
// fails if the plugin breaks the rule or the Subject lacks a request that the rule needs. It is
// skipped if the rule is waived, does not apply to the plugin, or is not reached by any request.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	if subject.Name == "" {
		subject.Name = t.Name()
	}
	plan := NewPlan(subject, options...)
	for _, misuse := range plan.Misuse() {
		t.Error(misuse)
	}
	count := map[framework.Verdict]int{}
	for _, each := range plan.Rules() {
		t.Run(each.String(), func(t *testing.T) {
			outcome := plan.Check(each)
			count[outcome.Verdict]++
			rule.Tell(t, outcome.Verdict, outcome.Text(subject.Name))
		})
	}
	t.Log(rule.Summary(count))
}
