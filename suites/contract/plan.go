package contract

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// Plan is a Subject with the selected rules. It is for adapters of other test frameworks, which
// check and report each rule themselves; package specs is such an adapter. Make a Plan with
// [NewPlan]. Its methods are safe for concurrent use.
type Plan struct{ internal *check.Plan }

// NewPlan selects the rules. It does not build a plugin, so an adapter can call it while the test
// framework collects tests. Wrong options are no error here: Misuse returns them.
func NewPlan(subject Subject, options ...Option) *Plan {
	var selected selection
	for _, option := range options {
		if option != nil {
			option(&selected)
		}
	}
	return &Plan{check.NewPlan(subject, rules.All(), selected)}
}

// Rules returns the selected rules in the order of their checks.
func (p *Plan) Rules() []Rule { return rule.Rules(p.internal.Rules()) }

// Misuse returns what is wrong with the Subject or the options. Empty means nothing. The
// first call builds a plugin.
func (p *Plan) Misuse() []string { return p.internal.Misuse() }

// Check checks one of the selected rules and applies its waiver. If the rule is not selected, the
// verdict is Errored.
func (p *Plan) Check(wanted Rule) Outcome {
	for _, each := range p.internal.Rules() {
		if each.ID == wanted.ID {
			return p.internal.Check(each)
		}
	}
	return Outcome{Rule: wanted, Verdict: framework.Errored, Reason: fmt.Sprintf("find rule %q: it is not among the selected rules, which Plan.Rules returns", wanted.ID)}
}
