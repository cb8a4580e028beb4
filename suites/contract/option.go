package contract

import (
	"time"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// DefaultBudget is how long the check of one rule may take unless Budget says otherwise.
const DefaultBudget = 10 * time.Second

// Option selects or waives rules. Options name a rule by its Name or by its ID; an unknown
// name is reported as misuse.
type Option func(*selection)

type selection = check.Options

// Only checks these rules and no others.
func Only(rules ...string) Option {
	return func(o *selection) { o.Only = append(o.Only, rules...) }
}

// With checks these rules of level MAY in addition.
func With(rules ...string) Option {
	return func(o *selection) { o.With = append(o.With, rules...) }
}

// Waive allows the plugin to break a rule. The reason is required and appears in the
// output. If the plugin does not break the rule, the rule fails.
func Waive(rule, why string) Option {
	return func(o *selection) { o.Waivers = append(o.Waivers, check.Waiver{Rule: rule, Why: why}) }
}

// Flaky is Waive for a rule that the plugin breaks only sometimes: the rule does not fail if
// the plugin does not break it this time.
func Flaky(rule, why string) Option {
	return func(o *selection) {
		o.Waivers = append(o.Waivers, check.Waiver{Rule: rule, Why: why, Flaky: true})
	}
}

// Strict makes rules without a verdict fail: those that no request of the Subject reaches.
func Strict() Option {
	return func(o *selection) { o.Strict = true }
}

// Budget is how long the check of one rule may take. 0 means DefaultBudget.
func Budget(perRule time.Duration) Option {
	return func(o *selection) { o.Budget = perRule }
}
