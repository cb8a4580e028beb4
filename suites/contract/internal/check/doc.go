// Package check is the machinery of the contract suite. It selects rules (Plan), runs the
// function of a rule (T), builds plugins, calls them (Invocation, Response), makes unusual
// requests (Variant), and finds what a call changed in its attributes (Snapshot). It knows no
// rules: package rules has them. Package reflection compares and changes single objects.
package check
