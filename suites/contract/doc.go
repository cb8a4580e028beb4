// Package contract checks the rules for compiled-in admission plugins. Most of these rules are not
// in the documentation of the interfaces in k8s.io/apiserver/pkg/admission. Examples: Validate
// changes nothing, Admit is idempotent, a dry run has no side effects, cached objects are
// read-only. [Rules] returns all rules.
//
// A [Subject] describes the plugin: where it comes from, the objects in its cluster, and
// requests that it admits and refuses. [Run] checks each rule in a subtest:
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Subject{
//			Source: harness.FromRegister(PluginName, Register),
//			Allow:  []framework.Request{framework.Create(pod)},
//			Reject: []framework.Request{framework.Create(badPod)},
//		})
//	}
//
// # Names of rules
//
// A rule has a name and a short ID, such as admit-is-idempotent and A1. Options accept
// both, and the subtest has both: go test -run TestContract/A1 and
// go test -run TestContract/admit-is-idempotent run the same rule.
//
// # Waivers
//
// If a plugin breaks a rule intentionally, waive the rule and give the reason:
//
//	contract.Waive("refusals-belong-in-validate", "refuses in Admit for historical reasons")
//
// If the plugin does not break a waived rule, the subtest fails, so that waivers do not become
// outdated. Use [Flaky] for a rule that the plugin breaks only sometimes. If the plugin
// intentionally overwrites values that users set in a field, name the field in Subject.Enforced.
//
// # Requests
//
// The plugin must admit each request of Subject.Allow, and refuse each request of Subject.Reject.
// Subject.RejectWith can also require the reason, the field or a part of the message:
//
//	RejectWith: []contract.Refusal{{Request: framework.Create(bad), Reason: metav1.StatusReasonInvalid, Field: "spec.replicas"}}
//
// The Subject needs a request for each operation that the plugin handles. Otherwise rule
// requests-cover-every-operation ends with the verdict error.
//
// The package is public for the tests of plugins.
//
// # Promise
//
// A rule passes only if a request of the Subject reached the code that the rule is about. Otherwise
// its subtest is skipped as inconclusive; with [Strict] it fails. A rule that does not apply to the
// plugin, such as a rule for Admit if there is no Admit, is skipped as unsupported. If the check of
// a rule does not return within its budget, the rule fails, and the other rules still run. For each
// rule, this package has a test with a broken plugin that breaks this rule and no other.
//
// # Not promised
//
// A pass proves nothing about code that the requests of the Subject do not reach. Data
// races are found only when go test runs with -race. Without it, a lost update of a counter is found if the plugin
// calls a method of the attributes between its read and its write.
package contract
