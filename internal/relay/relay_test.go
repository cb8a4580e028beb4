package relay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admissiontest/admissiontest/internal/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started is a running Relay with two ports, and the other end of its channel.
type started struct {
	*relay.Relay
	channel net.Conn
	stop    func() error
}

func start(t *testing.T) started {
	t.Helper()
	listening, err := relay.Listen("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- listening.Run(ctx, there) }()
	if err := relay.Greet(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = errors.Join(stop(), here.Close()) })
	return started{listening, here, stop}
}

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	var dialer net.Dialer
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if errors.Is(err, syscall.EMFILE) {
		t.Skip("this process can only open few files")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return connection.(*net.TCPConn)
}

// serve forwards connections from the Relay to a server that calls a function, until the test
// ends or the channel breaks.
func serve(t *testing.T, r started, answer func(*net.TCPConn, int)) <-chan error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handlers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Serve(ctx, r.channel, func(ctx context.Context, port int) (*net.TCPConn, error) {
			var dialer net.Dialer
			dialed, err := dialer.DialContext(ctx, "tcp", listener.Addr().String())
			if err != nil {
				return nil, err
			}
			accepted, err := listener.Accept()
			if err != nil {
				return nil, err
			}
			handlers.Go(func() { defer accepted.Close(); answer(accepted.(*net.TCPConn), port) })
			return dialed.(*net.TCPConn), nil
		})
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range ended {
		}
		listener.Close()
		handlers.Wait()
	})
	return ended
}

func echo(connection *net.TCPConn, _ int) { _, _ = io.Copy(connection, connection) }

func TestConnectionsGoThrough(t *testing.T) {
	r := start(t)
	serve(t, r, echo)
	said := make([]byte, 300<<10) // more than the window of a stream
	_, _ = rand.Read(said)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			connection := dial(t, r.Addresses()[0].String())
			go func() {
				_, _ = connection.Write(said)
				_ = connection.CloseWrite()
			}()
			heard, err := io.ReadAll(connection)
			if err != nil || !bytes.Equal(heard, said) {
				t.Errorf("got %d bytes and %v, want the %d that were sent", len(heard), err, len(said))
			}
		})
	}
	all.Wait()
}

func TestThePortIsTold(t *testing.T) {
	r := start(t)
	ports := make(chan int, 2)
	serve(t, r, func(_ *net.TCPConn, port int) { ports <- port })
	for _, address := range r.Addresses() {
		if _, err := io.ReadAll(dial(t, address.String())); err != nil {
			t.Error(err)
		}
		if got := <-ports; got != address.Port {
			t.Errorf("got port %d, want %d", got, address.Port)
		}
	}
}

// The end of a connection is forwarded as an end, and a reset as a reset.
func TestResetIsNotAnEnd(t *testing.T) {
	r := start(t)
	serve(t, r, func(connection *net.TCPConn, _ int) {
		_, _ = io.ReadFull(connection, make([]byte, 4))
		_ = connection.SetLinger(0)
	})
	connection := dial(t, r.Addresses()[0].String())
	_, _ = connection.Write([]byte("ping"))
	if _, err := io.ReadAll(connection); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestCallerGoesAway(t *testing.T) {
	for name, linger := range map[string]int{"reset": 0, "end": -1} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			arrived, seen := make(chan error, 1), make(chan error, 1)
			serve(t, r, func(connection *net.TCPConn, _ int) {
				_, err := io.ReadFull(connection, make([]byte, 4))
				arrived <- err
				_, err = io.Copy(io.Discard, connection)
				seen <- err
			})
			connection := dial(t, r.Addresses()[0].String())
			_, _ = connection.Write([]byte("ping"))
			if err := <-arrived; err != nil {
				t.Error(err)
			}
			_ = connection.SetLinger(linger)
			connection.Close()
			if err := <-seen; (err != nil) != (linger == 0) {
				t.Errorf("the server saw %v, want a reset: %t", err, linger == 0)
			}
		})
	}
}

// A program that is no Relay, or says nothing, is no other end.
func TestGreet(t *testing.T) {
	for want, says := range map[string]string{"another program": strings.Repeat("HTTP/1.1 400 ", 9), "EOF": ""} {
		t.Run(want, func(t *testing.T) {
			here, there := net.Pipe()
			go func() {
				_, _ = there.Write([]byte(says))
				there.Close()
			}()
			if err := relay.Greet(t.Context(), here); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		})
	}
}

// If a channel breaks, its connections are reset, and new ones are refused.
func TestChannelBreaks(t *testing.T) {
	r := start(t)
	ended := serve(t, r, echo)
	carried := dial(t, r.Addresses()[0].String())
	_, _ = carried.Write([]byte("ping"))
	if _, err := io.ReadFull(carried, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	r.channel.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the channel broke") {
		t.Errorf("serve: got %v, want an error that the channel broke", err)
	}
	if _, err := io.ReadAll(carried); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if err := r.stop(); err == nil || !strings.Contains(err.Error(), "the channel broke") {
		t.Errorf("run: got %v, want an error that the channel broke", err)
	}
}

// A connection that cannot be forwarded ends the channel: what runs then says nothing.
func TestDialThatFails(t *testing.T) {
	r := start(t)
	none := errors.New("none")
	ended := make(chan error)
	go func() {
		ended <- relay.Serve(t.Context(), r.channel, func(context.Context, int) (*net.TCPConn, error) { return nil, none })
	}()
	var dialer net.Dialer
	caller, err := dialer.DialContext(t.Context(), "tcp", r.Addresses()[0].String())
	if err == nil { // the reset can come before Dial returns
		_, err = io.ReadAll(caller)
		caller.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if err := <-ended; !errors.Is(err, none) {
		t.Errorf("got %v, want %v", err, none)
	}
}

func TestStopClosesAll(t *testing.T) {
	r := start(t)
	serve(t, r, echo)
	connection := dial(t, r.Addresses()[0].String())
	_, _ = connection.Write([]byte("ping"))
	_, _ = io.ReadFull(connection, make([]byte, 4))
	if err := r.stop(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(connection); err == nil {
		t.Error("the connection ended well, want a reset")
	}
}

func TestListenErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := relay.Listen("127.0.0.1:0", taken.Addr().String()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want that the address is in use", err)
	}
}
