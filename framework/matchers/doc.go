// Package matchers has gomega matchers for the outcome of a Request: a [harness.Result] of a
// plugin in this process, or a [framework.Result] of any other Target.
//
//	Expect(h.Do(framework.Create(shoot))).To(SatisfyAll(
//		BeAdmitted(), HaveMutatedOnly("spec.seedSelector"), BeIdempotent()))
//	Expect(h.Do(framework.Delete(shoot))).To(BeRejected(metav1.StatusReasonForbidden).
//		For(core.Resource("shoots"), "s").Mentioning("confirmation"))
//
// Without gomega, use the methods of harness.Result: MustAllow, MustReject, Changes, Calls and
// Again.
//
// The package is public for repositories whose tests use gomega.
//
// # Promise
//
// If the value is not one of these two types, the matcher returns an error, so a negated matcher
// fails too. The text of every failure has the request, the expectation and the outcome.
//
// # Not promised
//
// A framework.Result does not have the changes and calls of a plugin. For such a Result,
// HaveMutatedOnly, HaveMutatedNothing, HaveMadeNoCalls, HaveWritten and BeIdempotent return an
// error.
package matchers
