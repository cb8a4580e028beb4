// Package framework is the vocabulary of admissiontest. A [Request] is sent to a
// [Target], which returns a [Result] with a [Trace] of the admission calls. A test
// turns that into a [Verdict], weighted by the [Level] of the requirement.
//
// The package is public because the tests of plugins, webhooks and API servers use its types.
//
// # Promise
//
// The package has values and one interface, Target. It imports no testing framework,
// no client and nothing that starts a process: a plugin's repository can depend on
// it alone.
//
// # Not promised
//
// A Result has what its Target could observe. Without access to the audit log, for
// instance, Result.Audit is nil, which is not the same as an empty event.
package framework
