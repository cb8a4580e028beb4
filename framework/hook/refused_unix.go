//go:build unix

package hook

import (
	"fmt"
	"net"
	"syscall"
)

// holdPort binds a TCP port of ip without listening on it: connections to it are
// refused, and no other process can bind it. Release frees it.
func holdPort(ip net.IP) (port int, release func() error, err error) {
	family, address := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Addr: [16]byte(ip.To16())})
	if v4 := ip.To4(); v4 != nil {
		family, address = syscall.AF_INET, &syscall.SockaddrInet4{Addr: [4]byte(v4)}
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, fmt.Errorf("open socket for a refused port: %w", err)
	}
	release = func() error { return syscall.Close(fd) }
	if err := syscall.Bind(fd, address); err != nil {
		_ = release()
		return 0, nil, fmt.Errorf("bind refused port on %s: %w", ip, err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		_ = release()
		return 0, nil, fmt.Errorf("read refused port on %s: %w", ip, err)
	}
	switch bound := bound.(type) {
	case *syscall.SockaddrInet4:
		return bound.Port, release, nil
	case *syscall.SockaddrInet6:
		return bound.Port, release, nil
	default:
		_ = release()
		return 0, nil, fmt.Errorf("read refused port on %s: got an address of type %T, want an IP address", ip, bound)
	}
}
