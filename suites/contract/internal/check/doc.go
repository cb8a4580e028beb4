// Package check is the machinery of the contract suite. It selects rules (Plan), runs the
// function of a rule (T), builds plugins, calls them (Invocation, Response), makes unusual
// requests (Variant), and finds changes of objects and memory (Snapshot, Memory,
// Overwrite). It knows no rules: package rules has them.
package check
