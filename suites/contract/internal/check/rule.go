package check

import "github.com/admissiontest/admissiontest/framework"

// Rule is one rule for admission plugins, with the function that checks it.
type Rule struct {
	// ID is the short name, such as "A1". Name is the long one: "admit-is-idempotent".
	// Both are stable and never reused.
	ID, Name string
	// Level is Must or Should for rules that are always checked, and May for rules that
	// are checked on request.
	Level framework.Level
	// Title is the rule in one sentence.
	Title string
	// Why says what goes wrong in an API server if a plugin breaks the rule.
	Why string
	// Fix says how to change a plugin that breaks the rule.
	Fix string
	// Source has the addresses of issues, code and documentation.
	Source []string
	// Check checks the rule.
	Check func(*T)
	// Exclusive is true for a Check that changes state of the whole process. No other
	// Check runs at the same time.
	Exclusive bool
}

// String returns both names: "A1 admit-is-idempotent".
func (r Rule) String() string { return r.ID + " " + r.Name }

// Is reports whether a name is the ID or the Name of the rule.
func (r Rule) Is(name string) bool { return name == r.ID || name == r.Name }
