package contract

import (
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// Rule is one rule for admission plugins. [Rules] returns all of them. The fields are:
//
//	ID, Name  the short name, such as "A1": a letter for the group and a number; and the long name, such as
//	          "admit-is-idempotent"; both are stable and never reused
//	Level     MUST or SHOULD
//	Title     the rule in one sentence
//	Why       what goes wrong in an API server if a plugin breaks the rule
//	When      what breaks the rule, if Title does not say it; empty for most rules
//	Fix       how to change a plugin that breaks the rule
//	Source    the addresses of issues, code and documentation
type Rule = rule.Rule

// Rules returns all rules of all levels, in the order in which they are checked.
func Rules() []Rule { return rule.Rules(rules.All()) }
