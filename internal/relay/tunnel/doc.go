// Package tunnel carries TCP connections from a pod to a process that the pod
// cannot reach: a [Relay] in the pod listens, and hands each connection through
// one channel to whoever holds the other end, where [Serve] takes them.
//
//	API server ──TCP──▶ Relay ══channel══▶ Serve ──TCP──▶ Hook server
//
// The channel is any stream of bytes. It begins with a token ([Greet] on the one
// side, the Relay's check on the other) and is yamux from there on. For each
// connection the Relay opens one stream and writes the port, two bytes, by which
// the connection came; then both directions are frames: four bytes of length and
// that many bytes. Two lengths are words: the sender's end of the connection, and
// its reset.
//
// # Promise
//
// Bytes, the end of each direction and a TCP reset arrive as they were sent. Who
// does not know the token gets no stream. A channel that breaks resets the
// connections that it carried, and no others; the next one that greets takes its
// place, and a connection that comes in between waits for it a while.
//
// # Not promised
//
// The Relay neither reads nor changes what it carries: encryption, and who may
// speak, are matters of the two ends.
package tunnel
