// Package check runs the rules of the contract suite. It selects rules (Plan), runs the function of
// a rule (T), builds plugins, calls plugins (Invocation, Response), makes unusual requests
// (Variant), and finds what a call changed in its attributes (Snapshot). The rules are in package
// rules. Package reflection compares and changes single objects.
package check
