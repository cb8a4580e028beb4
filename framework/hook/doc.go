// Package hook is an admission webhook that does as it is told: a [Server] takes
// [Hook] registrations, answers each call as the Hook's [Script] says, misbehaves
// where the script names a [Fault], and records what it was asked.
//
// One Server serves many scenarios at once. Each has an owner name of its own,
// under which its Hooks are registered, its calls are recorded and its barriers
// are met; owners never see one another. The [Endpoint] that Register returns is
// what goes into a webhook's clientConfig.
//
// # Promise
//
// The Server makes its certificate authority and its certificates in memory when
// it starts, and serves HTTPS with HTTP/1.1 only. A call is recorded when it has
// been read, before anything is answered, so that whoever has an answer in hand
// finds its call in Calls, Finished included. Nothing outlives Close: calls that
// hang, wait at a barrier or are being delayed are ended by it, as they are when
// their caller gives up or their owner is forgotten.
//
// # Not promised
//
// A Hook reads AdmissionReviews v1 and v1beta1 and nothing else: what it cannot read
// is recorded and refused with 400 (ConversionReviews have Server.RegisterConversion,
// which records nothing). The Server does not check that an answer makes
// sense: a Script may say anything. When a caller gives up, its call's Finished is
// set once the connection's end is seen, which can be some time after the caller
// has moved on; until then it is zero. Meanwhile functions are waited for and not
// interrupted, Close included.
package hook
