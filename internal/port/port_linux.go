package port

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reserve reserves a TCP port of the loopback address until release is called. The socket is
// bound and does not listen, so no other process can get the port. kube-apiserver can listen on it
// with --permit-port-sharing (SO_REUSEPORT): Linux only allows that to the same user.
func Reserve() (port int, release func() error, err error) {
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

// maxFiles returns how many files this process can open.
func maxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return defaultFiles
	}
	return int(min(limit.Cur, 1<<20)) //nolint:gosec // it is small
}

// dropsAt is the index of SK_MEMINFO_DROPS in the answer to SO_MEMINFO: linux/sock_diag.h.
const dropsAt = 8

// queueDrops returns how many connections to a listening socket the system dropped, because too many waited to be
// accepted. Ok is false if that is not known.
func queueDrops(socket syscall.RawConn) (count int, ok bool) {
	err := socket.Control(func(fd uintptr) {
		var info [dropsAt + 1]uint32
		size := uint32(unsafe.Sizeof(info))
		_, _, failed := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // package unix has no function for it
		ok = failed == 0 && uintptr(size) == unsafe.Sizeof(info)
		count = int(info[dropsAt])
	})
	return count, ok && err == nil
}
