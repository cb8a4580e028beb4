// Package relay forwards TCP connections from a pod to a process that the pod cannot reach. The program of the pod,
// internal/relay/cmd/relay, is a [Relay]: it listens, and sends all connections through one channel. [Serve] accepts
// them at the other end, in package providers.
//
//	API server ──TCP──▶ Relay ══channel══▶ Serve ──TCP──▶ Hook server
//
// The channel is any stream of bytes. The Relay sends a line first ([Greet] reads it). After that it is yamux. For each
// connection the Relay opens a stream and writes the port of the connection, two bytes. A connection that is reset before
// these arrive is never made at the other end.
//
// # Promise
//
// Bytes, the end of each direction and TCP resets are forwarded. If the channel breaks, its connections are reset, and
// both ends say so. It also ends if a connection cannot be forwarded, because other clients make too many.
//
// # Not promised
//
// The Relay neither reads nor changes the bytes. Encryption and authentication of the connections are up to both ends.
// Whoever opens the channel protects it.
package relay
