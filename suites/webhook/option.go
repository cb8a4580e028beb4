package webhook

import (
	"time"

	"github.com/admissiontest/admissiontest/internal/rule"
)

// DefaultBudget is how long the check of one rule may take for one webhook unless Budget says otherwise.
const DefaultBudget = rule.DefaultBudget

// Option selects or waives rules, or changes how they are checked. Options name a rule by its Name
// or by its ID. An unknown name is misuse, which fails the test: see Report.Misuse.
type Option = rule.Option

// Only selects these rules and no others.
func Only(rules ...string) Option {
	return func(o *rule.Options) { o.Only = append(o.Only, rules...) }
}

// With also selects these rules, which are checked only on request because they take time or disturb the webhook.
func With(rules ...string) Option {
	return func(o *rule.Options) { o.With = append(o.With, rules...) }
}

// Waive allows the webhooks to break a rule, or a rule to stay inconclusive. Why is the reason; it is required and appears in the
// output. If a webhook does not break the rule, the verdict is Fail.
func Waive(name, why string) Option { return rule.Waive(rule.Waiver{Rule: name, Why: why}) }

// WaiveUntil is Waive up to and including a day, such as "2027-01-31". Afterwards it is a failure if a webhook
// still breaks the rule.
func WaiveUntil(name, why, lastDay string) Option {
	return rule.Waive(rule.Waiver{Rule: name, Why: why, Until: lastDay})
}

// Flaky is Waive for a rule that a webhook breaks only sometimes, or that only one of the webhooks breaks: the verdict is Pass if the
// webhook does not break the rule this time.
func Flaky(name, why string) Option {
	return rule.Waive(rule.Waiver{Rule: name, Why: why, Flaky: true})
}

// Strict makes inconclusive rules fail.
func Strict() Option {
	return func(o *rule.Options) { o.Strict = true }
}

// Budget is how long the check of one rule may take for one webhook. 0 means DefaultBudget.
func Budget(perRule time.Duration) Option {
	return func(o *rule.Options) { o.Budget = perRule }
}
