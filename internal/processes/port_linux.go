package processes

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ReservePort reserves a TCP port of an IP address until release is called. The socket is bound and does not listen, so
// connections are refused, and no other process can get the port. kube-apiserver can listen on it with
// --permit-port-sharing (SO_REUSEPORT): Linux only allows that to the same user.
func ReservePort(ip net.IP) (port int, release func() error, err error) {
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: [16]byte(ip.To16())})
	if v4 := ip.To4(); v4 != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte(v4)}
	}
	socket, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", os.NewSyscallError("socket", err))
	}
	release = func() error { return os.NewSyscallError("close", unix.Close(socket)) }
	err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(socket, address))
	}
	if err == nil {
		address, err = unix.Getsockname(socket)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port of %s: %w", ip, errors.Join(err, release()))
	}
	switch bound := address.(type) {
	case *unix.SockaddrInet4:
		port = bound.Port
	case *unix.SockaddrInet6:
		port = bound.Port
	}
	return port, release, nil
}

// maxFiles returns how many files this process can open.
func maxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return defaultFiles
	}
	return int(min(limit.Cur, 1<<20)) //nolint:gosec // it is small
}
