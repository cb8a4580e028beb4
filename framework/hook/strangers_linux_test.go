package hook_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
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

// visitor opens a connection to an address, as a client that does not know the secret.
type visitor func(address string) (net.Conn, error)

func dialTLS(address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: time.Second}
	return tls.DialWithDialer(dialer, "tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // any client
}

func sending(dial visitor, text string) visitor {
	return func(address string) (net.Conn, error) {
		connection, err := dial(address)
		if err == nil {
			_, err = io.WriteString(connection, text)
		}
		return connection, err
	}
}

func silent(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, time.Second) }

// visitors are the ways to hold a connection.
func visitors() map[string]visitor {
	return map[string]visitor{
		"silent":                       silent,
		"half of a TLS handshake":      sending(silent, "\x16\x03\x01\x01\x00\x01"),
		"no request":                   dialTLS,
		"half of a header":             sending(dialTLS, "POST /wrong/path HTTP/1.1\r\nHost: a\r\nX-Slow: "),
		"a body that does not arrive":  sending(dialTLS, "POST /wrong/path HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\na"),
		"requests with a wrong secret": sending(dialTLS, "GET /wrong/path HTTP/1.1\r\nHost: a\r\n\r\n"),
	}
}

// Connections of clients that do not know the secret neither close that of an API server nor keep it from
// making a new one.
func TestStrangers(t *testing.T) {
	for name, visit := range visitors() {
		t.Run(name, func(t *testing.T) {
			server := startWithFewFiles(t)
			known := register(t, server, "o")
			known.call(t) // its connection stays open
			listeners, err := server.Listeners()
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				if connection, err := visit(listeners[0].Address); err == nil {
					defer connection.Close()
				}
			}
			if got := known.call(t); got.StatusCode != http.StatusOK {
				t.Errorf("got %d on the connection that was open before, want 200", got.StatusCode)
			}
			fresh := register(t, server, "other")
			if got := fresh.call(t); got.StatusCode != http.StatusOK {
				t.Errorf("got %d on a new connection, want 200", got.StatusCode)
			}
			if calls := server.Calls("o"); len(calls) != 2 || calls[0].Connection != calls[1].Connection {
				t.Errorf("got calls %v, want two on one connection", calls)
			}
			closed := server.Strangers().Closed
			if answered := name == "requests with a wrong secret"; (closed > 0) == answered {
				t.Errorf("%d connections were closed", closed)
			}
		})
	}
}

// If connections come faster than an API server can show the secret, it may be disturbed, but not without a trace.
func TestManyStrangers(t *testing.T) {
	for _, name := range []string{"silent", "half of a TLS handshake", "no request"} {
		t.Run(name, func(t *testing.T) {
			server := startWithFewFiles(t)
			register(t, server, "o").call(t)
			listeners, err := server.Listeners()
			if err != nil {
				t.Fatal(err)
			}
			flood(t, listeners[0].Address, visitors()[name])
			deadline := time.Now().Add(30 * time.Second)
			for calls := 0; calls < 20 || server.Strangers().Closed == 0 && time.Now().Before(deadline); calls++ {
				before := server.Strangers().Lost
				answer, err := register(t, server, "o").post(t.Context(), review(v1, "u"))
				if failed := err != nil || answer.StatusCode != http.StatusOK; failed && server.Strangers().Lost == before {
					t.Errorf("a call failed, and no connection is known to be lost: %v", err)
				}
			}
			if server.Strangers().Closed == 0 {
				t.Error("no connection was closed")
			}
		})
	}
}

// flood opens connections until the end of the test, each as soon as one of the last ones is closed.
func flood(t *testing.T, address string, visit visitor) {
	t.Helper()
	ended := make(chan struct{})
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			var open []net.Conn
			for {
				select {
				case <-ended:
					for _, one := range open {
						_ = one.Close()
					}
					return
				default:
				}
				if connection, err := visit(address); err == nil {
					open = append(open, connection)
				}
				if len(open) > 100 {
					_, open = open[0].Close(), open[1:]
				}
			}
		})
	}
	t.Cleanup(func() {
		close(ended)
		running.Wait()
	})
}

// The ports of Faults have the same limit. What is closed there can have been an API server's connection.
func TestStrangersAtFaults(t *testing.T) {
	server := startWithFewFiles(t)
	listeners, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners {
		if listener.Fault != hook.NoFault && listener.Fault != hook.Refused {
			t.Run(string(listener.Fault), func(t *testing.T) { strangersAt(t, server, listener) })
		}
	}
}

func strangersAt(t *testing.T, server *recorder, listener hook.Listener) {
	t.Helper()
	closed, lost := server.Strangers().Closed, server.Strangers().Lost
	first, err := sending(silent, "\x16\x03\x01\x01\x00\x01")(listener.Address)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		connection, err := silent(listener.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	_ = first.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("fault %s: the oldest connection got %v, want %v", listener.Fault, err, syscall.ECONNRESET)
	}
	first.Close()
	if server.Strangers().Closed == closed || server.Strangers().Lost == lost {
		t.Errorf("fault %s: no connection was closed or lost", listener.Fault)
	}
}
