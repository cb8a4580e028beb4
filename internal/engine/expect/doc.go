// Package expect compares a framework.Result with the expectation of a scenario, and collects what a report shows of
// the mismatches: the timeline of the calls, what each webhook and policy does about the request, and who refused it.
//
// Judge only checks the fields that are set in the Expectation, with one exception: without
// allowed, code and reason, the request must be allowed. Package match compares objects,
// reviews and audit events.
//
// # Promise
//
// Unknown is never success. These expectations do not hold: a field of a call that was inferred
// and not received, an audit event that was not observed, the order of fewer than two calls, and
// an invalid expectation.
//
// The mismatches have a fixed order: the response (allowed, code, reason, message, details,
// object, warnings, audit), the calls, and the times of the calls. Mismatches of calls are in the
// order of the calls.
//
// # Not promised
//
// The Result must be complete: calls that are recorded later are not judged. The texts of a
// Mismatch are for people and can change.
package expect
