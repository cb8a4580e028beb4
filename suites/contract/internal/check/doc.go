// Package check runs the rules of the contract suite. It selects rules (Plan), runs the function of
// a rule (T), builds plugins, calls plugins (Invocation, Response), makes unusual requests
// (Variant), and finds what a call changed in its attributes (Snapshot). By reflection it compares objects, finds the
// fields that a plugin changed and the memory that objects share, and edits objects as another client does. The rules
// are in package rules.
package check
