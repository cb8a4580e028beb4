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
// A value of another type is an error and not a mismatch. The text of a failure, also of a
// negated matcher, has the request, the expectation and the outcome.
//
// # Not promised
//
// Only a harness.Result has the changes and calls of a plugin. HaveMutatedOnly,
// HaveMutatedNothing, HaveMadeNoCalls, HaveWritten and BeIdempotent return an error for a
// framework.Result.
package matchers
