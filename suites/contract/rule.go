package contract

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// Rule is one rule for admission plugins. [Rules] returns all of them.
type Rule struct {
	// ID is the short name, such as "A1": a letter for the group and a number. Name is the
	// long name, such as "admit-is-idempotent". Both are stable and never reused.
	ID, Name string
	// Level is MUST or SHOULD for rules that are always checked. A rule of level MAY is
	// checked only with the option With or Only.
	Level framework.Level
	// Title is the rule in one sentence.
	Title string
	// Why says what goes wrong in an API server if a plugin breaks the rule.
	Why string
	// Fix says how to change a plugin that breaks the rule.
	Fix string
	// Source has the addresses of issues, code and documentation.
	Source []string
}

// String returns both names: "A1 admit-is-idempotent".
func (r Rule) String() string { return r.ID + " " + r.Name }

// Rules returns all rules of all levels, in the order in which they are checked.
func Rules() []Rule { return publicRules(rules.All()) }

func publicRules(internal []check.Rule) []Rule {
	all := make([]Rule, len(internal))
	for i, rule := range internal {
		all[i] = publicRule(rule)
	}
	return all
}

func publicRule(r check.Rule) Rule {
	return Rule{ID: r.ID, Name: r.Name, Level: r.Level, Title: r.Title, Why: r.Why, Fix: r.Fix, Source: r.Source}
}
