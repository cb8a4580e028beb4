package webhook

import (
	"context"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/rules"
)

// Rule is one rule for webhooks. [Rules] returns all of them. The fields are:
//
//	ID, Name  the short name, such as "WH-IDEM-1", and the long name, such as "twice-is-once"; both are stable and
//	          never reused
//	Level     MUST or SHOULD
//	Title     the rule in one sentence
//	Why       what goes wrong if a webhook breaks the rule
//	When      what breaks the rule, if Title does not say it; empty for most rules
//	Fix       how to change a webhook that breaks the rule
//	Source    the addresses of issues, code and documentation
type Rule = rule.Rule

// Rules returns all rules, in the order in which they are checked.
func Rules() []Rule { return rule.Rules(rules.All()) }

// Outcome is the result of checking one rule for one webhook.
type Outcome struct {
	// Webhook is the name of the webhook in its configuration. Empty means that there is no configuration.
	Webhook string
	// Rule is the rule.
	Rule Rule
	// Verdict is Pass, Fail, Unsupported if the rule does not apply to the webhook, Inconclusive if it cannot be
	// judged, Skipped if the rule is waived, or Errored if the Subject is wrong.
	Verdict framework.Verdict
	// Reason says how the webhook breaks the rule, or explains another verdict. Empty for Pass.
	Reason string
	// Waiver is the reason of the waiver. Empty means that the rule is not waived.
	Waiver string
	// Duration is how long the check took.
	Duration time.Duration
	// Text describes the outcome: for a failure with the rule, why it matters and how to fix the webhook; for another
	// verdict in one line.
	Text string
}

// Report has the results for a Subject.
type Report struct {
	// Subject is the name of the Subject.
	Subject string
	// Misuse says what is wrong with the Subject or the options. Empty means nothing.
	Misuse []string
	// Err says why no webhook can be called at a URL of the Subject: nothing runs there, its certificate is not trusted, or its
	// path is wrong. There are no Outcomes then.
	Err error
	// Outcomes has an Outcome for each selected rule and each webhook, in the order of the checks.
	Outcomes []Outcome
}

// plan is a Subject with the selected rules.
type plan struct {
	prepared *check.Prepared
	rules    []check.Rule
	options  rule.Options
	misuse   []string
}

// suite is the name of this package in messages.
const suite = "webhook"

func newPlan(ctx context.Context, subject Subject, options []Option) plan {
	selected := rule.Selected(options)
	if selected.Budget == 0 {
		selected.Budget = DefaultBudget
	}
	prepared := check.Prepare(ctx, subject)
	misuse := append(selected.Misuse(suite, Rules()), prepared.Misuse...)
	return plan{prepared, rule.Select(rules.All(), selected), selected, misuse}
}

// check checks a rule for a webhook and applies its waiver.
func (p plan) check(each check.Rule, w *check.Webhook) Outcome {
	o := p.options.Apply(suite, p.prepared.Check(each, w, p.options.Budget))
	name := w.Name
	if name == "" {
		name = p.prepared.Name
	}
	return Outcome{Webhook: w.Name, Rule: o.Rule, Verdict: o.Verdict, Reason: o.Reason, Waiver: o.Waiver, Duration: o.Duration, Text: o.Text(name)}
}

// Check checks the rules and returns the results. It needs no testing.T. If the context ends, no further rule is
// checked, and the Report has the results so far.
func Check(ctx context.Context, subject Subject, options ...Option) Report {
	p := newPlan(ctx, subject, options)
	report := Report{Subject: subject.Name, Misuse: p.misuse, Err: p.prepared.Err}
	if report.Err != nil {
		return report
	}
	for _, each := range p.rules {
		for _, w := range p.prepared.Webhooks {
			if ctx.Err() != nil {
				return report
			}
			report.Outcomes = append(report.Outcomes, p.check(each, w))
		}
	}
	return report
}

// Run checks each rule in a subtest of t with a name such as WH-IDEM-1_twice-is-once. If the Subject has several
// webhooks, the subtest has a subtest for each of them. A subtest fails if the webhook breaks the rule. It is skipped
// if the rule is waived, does not apply to the webhook, or cannot be judged.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	if subject.Name == "" {
		subject.Name = t.Name()
	}
	p := newPlan(t.Context(), subject, options)
	for _, misuse := range p.misuse {
		t.Error(misuse)
	}
	if p.prepared.Err != nil {
		t.Fatal(p.prepared.Err)
	}
	count := map[framework.Verdict]int{}
	one := func(t *testing.T, each check.Rule, w *check.Webhook) {
		t.Helper()
		outcome := p.check(each, w)
		count[outcome.Verdict]++
		rule.Tell(t, outcome.Verdict, outcome.Text)
	}
	for _, each := range p.rules {
		t.Run(each.String(), func(t *testing.T) {
			if len(p.prepared.Webhooks) == 1 {
				one(t, each, p.prepared.Webhooks[0])
				return
			}
			for _, w := range p.prepared.Webhooks {
				t.Run(w.Name, func(t *testing.T) { one(t, each, w) })
			}
		})
	}
	t.Logf("%s (reviews built in process)", rule.Summary(count))
}
