// Package port has what this process listens on: [Reserve] reserves a port of the loopback address for a
// server that starts later, and [Strangers] limits the connections of clients that do not know a secret.
package port
