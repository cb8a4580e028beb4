// Package matchers has gomega matchers over what came back for a Request: a
// [harness.Result] of a plugin in this process, or a [framework.Result] of any other
// Target.
//
//	Expect(h.Do(framework.Create(shoot))).To(SatisfyAll(
//		BeAdmitted(), HaveMutatedOnly("spec.seedSelector"), BeIdempotent()))
//	Expect(h.Do(framework.Delete(shoot))).To(BeRejected(metav1.StatusReasonForbidden).
//		For(core.Resource("shoots"), "s").Mentioning("confirmation"))
//
// Who does not use gomega has the same from the Result itself: MustAllow, MustReject,
// Changes, Calls, Again.
//
// # Promise
//
// A value of another type is an error, not a mismatch. A failure tells what was asked,
// what was expected and what came of it; negated ones too.
//
// # Not promised
//
// What a plugin changed and called is known of a harness.Result only: the matchers of
// these things refuse others.
package matchers
