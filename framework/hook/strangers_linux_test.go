package hook_test

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// startWithFewFiles starts a Server while this process can open few files, so that it has a small limit for
// connections.
func startWithFewFiles(t *testing.T) *recorder {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 240, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	server := start(t)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	return server
}

// If other clients hold so many connections that a call of an API server fails, it is known that calls may fail.
func TestManyConnections(t *testing.T) {
	server := startWithFewFiles(t)
	known := register(t, server, "o")
	known.call(t) // its connection stays open
	listeners, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners {
		if listener.Fault == hook.Refused {
			continue
		}
		for range 100 {
			connection, err := net.DialTimeout("tcp", listener.Address, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
		}
	}
	if got := known.call(t); got.StatusCode != http.StatusOK {
		t.Errorf("got %d on the connection that was open before, want 200", got.StatusCode)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := register(t, server, "other").post(ctx, review(v1, "u")); err != nil && server.Strangers().Lost == 0 {
		t.Errorf("a call failed, and it is not known that there are too many connections: %v", err)
	}
}
