// Package judge says whether a framework.Result is what a scenario expects, and if
// not, in which ways.
//
// Judge looks at what the Expectation names and at nothing else, but for one:
// where it says nothing of allowed, code and reason, the request is expected to be
// allowed. Parts of objects, reviews and the audit event are compared as package
// match says.
//
// # Promise
//
// Unknown is never success. An expectation of a call that was inferred rather than
// received, of an audit event that nobody saw, or of the order of fewer than two
// calls does not hold. Nor does an expectation that is not well-formed.
//
// The mismatches come in a fixed order: the answer first (allowed, code, reason,
// message, details, object, warnings, audit), then the calls, then their times.
// Among those about calls, the first divergence is the first.
//
// # Not promised
//
// A step's Result must be complete: a call that is recorded after Judge looked is
// not judged. The texts of a Mismatch are for people and can change.
package judge
