package contract

import (
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// Plan is a Subject with the selected rules. It is for adapters of other test frameworks, which
// check and report each rule themselves; package specs is such an adapter. Make a Plan with
// [NewPlan]. Its methods are safe for concurrent use:
//
//	Rules   returns the selected rules in the order of their checks
//	Misuse  returns what is wrong with the Subject or the options; empty means nothing; the first call builds a plugin
//	Check   checks one of the selected rules and applies its waiver; if the rule is not selected, the verdict is Errored
type Plan = check.Plan

// NewPlan selects the rules. It does not build a plugin, so an adapter can call it while the test
// framework collects tests. Wrong options are no error here: Misuse returns them.
func NewPlan(subject Subject, options ...Option) *Plan {
	return check.NewPlan(subject, rules.All(), rule.Selected(options))
}
