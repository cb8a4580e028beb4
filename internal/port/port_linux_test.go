package port

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// A port is reserved until it is released. Only Listen can listen on it, once at a time.
func TestReserve(t *testing.T) {
	number, release, err := Reserve()
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
	for range 2 {
		shared, err := Listen(t.Context(), "tcp", address)
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
