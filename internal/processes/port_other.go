//go:build !linux

package processes

import (
	"fmt"
	"net"
)

// ReservePort returns a TCP port of an IP address that was free. (Elsewhere than on Linux,
// a socket that is bound and does not listen can get the connections of one that listens.)
func ReservePort(ip net.IP) (port int, release func() error, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return 0, nil, fmt.Errorf("find a free port of %s: %w", ip, err)
	}
	if err := listener.Close(); err != nil {
		return 0, nil, fmt.Errorf("find a free port of %s: %w", ip, err)
	}
	return listener.Addr().(*net.TCPAddr).Port, func() error { return nil }, nil //nolint:forcetypeassert // the network is tcp
}

// maxFiles returns how many files this process can open at least.
func maxFiles() int { return defaultFiles }
