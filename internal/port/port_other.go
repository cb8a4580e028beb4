//go:build !linux

package port

import (
	"fmt"
	"net"
	"syscall"
)

// Reserve returns a TCP port of the loopback address that was free. (Elsewhere than on Linux,
// a socket that is bound and does not listen can get the connections of one that listens.)
func Reserve() (port int, release func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("find a free port of 127.0.0.1: %w", err)
	}
	if err := listener.Close(); err != nil {
		return 0, nil, fmt.Errorf("find a free port of 127.0.0.1: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, func() error { return nil }, nil //nolint:forcetypeassert // the network is tcp
}

// maxFiles returns how many files this process can open at least.
func maxFiles() int { return defaultFiles }

// queueDrops is not known on this system.
func queueDrops(syscall.RawConn) (count int, ok bool) { return 0, false }
