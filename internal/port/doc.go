// Package port reserves a port of the loopback address for a server that starts later.
package port
