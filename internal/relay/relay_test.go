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

var token = strings.Repeat("t", relay.TokenSize) //nolint:gochecknoglobals // a constant that Go cannot write as one

// started returns a running Relay with two ports.
type started struct {
	*relay.Relay
	stop func() error
}

func start(t *testing.T) started {
	t.Helper()
	listening, err := relay.Listen(relay.Options{
		Token: token, Control: "127.0.0.1:0", Health: "127.0.0.1:0", Ports: []string{"127.0.0.1:0", "127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- listening.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return started{listening, stop}
}

// channel dials and greets.
func channel(t *testing.T, r started, token string) (net.Conn, error) {
	t.Helper()
	connection := dial(t, r.Control().String())
	return connection, relay.Greet(t.Context(), connection, token)
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
func serve(t *testing.T, r started, answer func(*net.TCPConn, int)) (net.Conn, <-chan error) {
	t.Helper()
	connection, err := channel(t, r, token)
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handlers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Serve(ctx, connection, func(ctx context.Context, port int) (*net.TCPConn, error) {
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
	return connection, ended
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
			seen := make(chan error, 1)
			serve(t, r, func(connection *net.TCPConn, _ int) {
				_, err := io.Copy(io.Discard, connection)
				seen <- err
			})
			connection := dial(t, r.Addresses()[0].String())
			_, _ = connection.Write([]byte("ping"))
			_ = connection.SetLinger(linger)
			connection.Close()
			if err := <-seen; (err != nil) != (linger == 0) {
				t.Errorf("the server saw %v, want a reset: %t", err, linger == 0)
			}
		})
	}
}

func TestWrongToken(t *testing.T) {
	r := start(t)
	for name, wrong := range map[string]string{"another": strings.Repeat("x", relay.TokenSize), "last byte": token[1:] + "x"} {
		t.Run(name, func(t *testing.T) {
			if _, err := channel(t, r, wrong); !errors.Is(err, relay.ErrRefused) {
				t.Errorf("got %v, want %v", err, relay.ErrRefused)
			}
		})
	}
	if _, err := channel(t, r, "short"); err == nil || !strings.Contains(err.Error(), "want 64") {
		t.Errorf("got %v, want the length", err)
	}
	stranger := dial(t, r.Control().String())
	_, _ = stranger.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 20))
	_, _ = io.ReadAll(stranger) // the relay closes it
	wantReset(t, r)             // there is no channel
}

// If a channel breaks, its connections are reset, and so are new ones.
func TestChannelBreaks(t *testing.T) {
	r := start(t)
	first, ended := serve(t, r, echo)
	carried := dial(t, r.Addresses()[0].String())
	_, _ = carried.Write([]byte("ping"))
	if _, err := io.ReadFull(carried, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the channel broke") {
		t.Errorf("serve: got %v, want an error that the channel broke", err)
	}
	if _, err := io.ReadAll(carried); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	wantReset(t, r)
}

// wantReset fails the test unless a new connection is reset.
func wantReset(t *testing.T, r started) {
	t.Helper()
	var dialer net.Dialer
	caller, err := dialer.DialContext(t.Context(), "tcp", r.Addresses()[0].String())
	if err == nil { // the reset can come before Dial returns
		_, err = io.ReadAll(caller)
		caller.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestNewChannelTakesThePlaceOfTheOld(t *testing.T) {
	r := start(t)
	_, old := serve(t, r, echo)
	serve(t, r, func(connection *net.TCPConn, _ int) { _, _ = connection.Write([]byte("new")) })
	if err := <-old; err == nil {
		t.Error("the old channel ended without an error")
	}
	if got, err := io.ReadAll(dial(t, r.Addresses()[0].String())); string(got) != "new" || err != nil {
		t.Errorf("got %q and %v, want the answer of the new channel", got, err)
	}
}

// A connection that cannot be forwarded ends the channel: what runs then says nothing.
func TestDialThatFails(t *testing.T) {
	r := start(t)
	connection, err := channel(t, r, token)
	if err != nil {
		t.Fatal(err)
	}
	none := errors.New("none")
	ended := make(chan error)
	go func() {
		ended <- relay.Serve(t.Context(), connection, func(context.Context, int) (*net.TCPConn, error) { return nil, none })
	}()
	wantReset(t, r)
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
	if err := r.stop(); err != nil {
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
	for name, options := range map[string]relay.Options{
		"want 64": {Token: "short", Control: "127.0.0.1:0"},
		"address": {Token: token, Control: taken.Addr().String()},
		"listen:": {Token: token, Control: "127.0.0.1:0", Health: taken.Addr().String()},
		"in use":  {Token: token, Control: "127.0.0.1:0", Health: "127.0.0.1:0", Ports: []string{"127.0.0.1:0", taken.Addr().String()}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := relay.Listen(options); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q in it", err, name)
			}
		})
	}
}
