// Package framework holds the words every other package of admissiontest
// speaks: a [Request] is sent to a [Target], which answers with a [Result] that
// carries a [Trace] of the admission calls made on the way. What a test made of
// it is a [Verdict], weighed by a [Level].
//
// # Promise
//
// Only vocabulary lives here: values without behaviour of their own, and the
// one interface, Target. The package imports no testing framework and nothing
// that starts a process, so that the author of a compiled-in plugin can depend
// on it alone.
//
// # Not promised
//
// A Result says what its Target could observe. A kube-apiserver shows no audit
// events to a mere client, so on such a target AuditAnnotations is nil, which
// is not the same as empty.
package framework
