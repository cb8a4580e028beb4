package envtest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve reserves a TCP port of the loopback address until release is called. The socket is
// bound and does not listen, so no other process can get the port. kube-apiserver listens on
// it with --permit-port-sharing (SO_REUSEPORT), which Linux only allows to the same user.
func reserve() (port int, release func() error, err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", os.NewSyscallError("socket", err))
	}
	release = func() error { return os.NewSyscallError("close", unix.Close(socket)) }
	err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	}
	var address unix.Sockaddr
	if err == nil {
		address, err = unix.Getsockname(socket)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port of 127.0.0.1: %w", errors.Join(err, release()))
	}
	return address.(*unix.SockaddrInet4).Port, release, nil //nolint:forcetypeassert // the family is AF_INET
}
