package processes

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A port is reserved until it is released. Only a listener of this user that shares it can listen on it.
func TestReserve(t *testing.T) {
	number, release, err := ReservePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(number)
	listener, err := net.Listen("tcp", address)
	if err == nil {
		_ = listener.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen on a reserved port: %v; want %v", err, syscall.EADDRINUSE)
	}
	sharing := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		controlled := raw.Control(func(socket uintptr) {
			err = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(controlled, err)
	}}
	for range 2 {
		shared, err := sharing.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", shared.Addr().String())
		if err != nil {
			t.Error(err)
		} else if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
