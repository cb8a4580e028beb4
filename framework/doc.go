// Package framework has the basic types of admissiontest. A test sends a [Request] to a [Target].
// The Target returns a [Result] with a [Trace] of the admission calls. The outcome of a scenario is
// a [Verdict]. The [Level] of its requirement says whether a failed scenario fails the run.
//
// The package is public because the tests of plugins, webhooks and API servers use its types.
//
// # Promise
//
// The package imports no testing framework, no client and nothing that starts a process, so the
// repository of a plugin can depend on this package alone.
//
// # Not promised
//
// A Result has only what its Target could observe. For example, Result.Audit is nil if the Target
// cannot read the audit log. That does not mean that the event had no annotations.
package framework
