// Package relay forwards TCP connections from a pod to a process that the pod cannot reach. The program of the pod,
// internal/relay/cmd/relay, is a [Relay]: it listens, and sends all connections through one channel. [Serve] accepts
// them at the other end, in package providers.
//
//	API server ──TCP──▶ Relay ══channel══▶ Serve ──TCP──▶ Hook server
//
// The channel is any stream of bytes. It begins with a greeting and a token ([Greet] sends them, the Relay checks
// them). After that it is yamux. For each connection the Relay opens a stream and writes the port of the connection,
// two bytes. Then both directions are frames: four bytes of length and that many bytes. Two special lengths mean the
// end and the reset of the connection. A reset of yamux's own would discard the bytes before it, with the port:
// TestCallerGoesAway then waits for a connection that never comes.
//
// # Promise
//
// Bytes, the end of each direction and TCP resets are forwarded. Without the token there is no stream. If the channel
// breaks, its connections are reset, and Serve says so. It also ends if a connection cannot be forwarded, because
// other clients make too many. The next channel with the token replaces the one before. Connections to the control
// port without the token do not keep a channel away.
//
// # Not promised
//
// The Relay neither reads nor changes the bytes. Encryption and authentication of the connections are up to both ends.
package relay
