// Package hook is a scripted admission webhook server. A [Server] has any number of
// [Hook] registrations. Each Hook answers as its [Script] says, fails in the way that
// the Script's [Fault] names, and records the calls it receives.
//
// One Server serves many scenarios at the same time. Each scenario has its own owner
// name, for its Hooks, its Recordings and its barriers. Owners are independent of each
// other. The [ClientConfig] that Register returns goes into the clientConfig of a
// webhook.
//
// A Hook can also be a proxy in front of another webhook: see [Upstream].
//
// The package is public because its Server and its Faults are useful for tests of any
// webhook client.
//
// # Promise
//
// A Server creates its certificate authority and its certificates in memory and serves
// HTTPS with HTTP/1.1 only. A call is recorded when it has been read and before it is
// answered: a client that has the answer finds the call in the Recording, with
// Finished set. Nothing outlives Close: it ends calls that hang, wait at a barrier or
// for a delay. They also end when their client disconnects or their owner is
// unregistered.
//
// # Not promised
//
// A Hook reads AdmissionReviews v1 and v1beta1. Any other request to it is recorded and
// refused with 400. ConversionReviews have Server.RegisterConversion and are not
// recorded. The Server does not check whether an answer is valid: a Script may answer
// anything. When a client disconnects, Finished is set once the Server notices, which
// can take some time. Meanwhile functions are not interrupted, and Close waits for
// them.
package hook
