package rule

import "github.com/admissiontest/admissiontest/framework"

// Rule is what a suite says about a rule. The suites document its fields.
type Rule struct {
	ID, Name string
	Level    framework.Level
	Title    string
	Why      string
	When     string
	Fix      string
	Source   []string
}

// String returns both names: "A1 admit-is-idempotent".
func (r Rule) String() string { return r.ID + " " + r.Name }

// Is reports whether a name is the ID or the Name of the rule.
func (r Rule) Is(name string) bool { return name == r.ID || name == r.Name }

// Definition is a Rule with the function that checks it.
type Definition[T any] struct {
	// ID is the short name, such as "A1". Name is the long one: "admit-is-idempotent".
	// Both are stable and never reused.
	ID, Name string
	// Level is Must or Should.
	Level framework.Level
	// OnRequest is true for a rule that is checked only on request, because its check is slow or disturbs the Subject.
	OnRequest bool
	// Title is the rule in one sentence.
	Title string
	// Why says what goes wrong in an API server if a Subject breaks the rule.
	Why string
	// When says what breaks the rule, if Title does not: the rules for configurations have it.
	When string
	// Fix says how to change a Subject that breaks the rule.
	Fix string
	// Source has the addresses of issues, code and documentation.
	Source []string
	// Check checks the rule.
	Check func(T)
	// Exclusive is true for a Check that changes state of the whole process. No other
	// Check runs at the same time.
	Exclusive bool
}

// Rule returns the rule without the function.
func (d Definition[T]) Rule() Rule {
	return Rule{ID: d.ID, Name: d.Name, Level: d.Level, Title: d.Title, Why: d.Why, When: d.When, Fix: d.Fix, Source: d.Source}
}

// String returns both names: "A1 admit-is-idempotent".
func (d Definition[T]) String() string { return d.Rule().String() }

// Rules returns the rules without their functions.
func Rules[T any](definitions []Definition[T]) []Rule {
	all := make([]Rule, len(definitions))
	for i, each := range definitions {
		all[i] = each.Rule()
	}
	return all
}
