package port

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen returns a listener of Strangers with a limit.
func listen(t *testing.T, strangers *Strangers) *door {
	t.Helper()
	made, err := strangers.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made.(*door)
}

// connect connects to a listener, and returns both ends of the connection.
func connect(t *testing.T, to *door) (client net.Conn, accepted *Conn) {
	t.Helper()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	got, err := to.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = got.Close() })
	return client, got.(*Conn)
}

// isOpen reports whether this end of a connection was not closed.
func isOpen(c *Conn) bool { return c.tcp.SetDeadline(time.Time{}) == nil }

// The oldest stranger of the listener with the most is reset. It is lost if it can have been a client that knows the secret.
func TestLimit(t *testing.T) {
	strangers := NewStrangers(5)
	one, other := listen(t, strangers), listen(t, strangers)
	_, alone := connect(t, other)
	_, shown := connect(t, one)
	shown.Shown()
	var of []*Conn
	var clients []net.Conn
	for range 4 {
		client, accepted := connect(t, one)
		clients, of = append(clients, client), append(of, accepted)
	}
	if strangers.Closed() != 0 || strangers.Lost() != 0 {
		t.Errorf("at the limit: closed %d and lost %d", strangers.Closed(), strangers.Lost())
	}
	of[0].since = time.Now().Add(-silence)
	connect(t, one)
	if strangers.Closed() != 1 || strangers.Lost() != 0 || isOpen(of[0]) {
		t.Errorf("after an old and silent one: closed %d and lost %d", strangers.Closed(), strangers.Lost())
	}
	if _, err := clients[0].Read(make([]byte, 1)); err == nil {
		t.Error("the client of a connection that was reset can read")
	}
	of[1].since = time.Now().Add(-silence)
	if _, err := clients[1].Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := of[1].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	connect(t, one)
	connect(t, one)
	if strangers.Closed() != 3 || strangers.Lost() != 2 || isOpen(of[2]) || !isOpen(of[3]) || !isOpen(alone) || !isOpen(shown) {
		t.Errorf("after one that spoke and a new one: closed %d and lost %d", strangers.Closed(), strangers.Lost())
	}
	if err := of[3].Reset(); err != nil {
		t.Error(err)
	}
	connect(t, one)
	if strangers.Closed() != 3 {
		t.Errorf("closed %d, want 3 as before: one stranger had left", strangers.Closed())
	}
}

// A connection that the system does not pass on because too many wait is lost.
func TestQueue(t *testing.T) {
	strangers := NewStrangers(Most)
	full := listen(t, strangers)
	raw, err := full.TCPListener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 1) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for range 5 {
		if client, err := new(net.Dialer).DialContext(limited, "tcp", full.Addr().String()); err == nil {
			defer client.Close()
		}
	}
	lost := strangers.Lost()
	if lost == 0 {
		t.Error("nothing is lost")
	}
	if err := full.Close(); err != nil {
		t.Error(err)
	}
	if after := strangers.Lost(); after < lost {
		t.Errorf("%d are lost after the listener was closed, want at least %d", after, lost)
	}
}

// If no more files can be opened, a stranger makes room; and if there is none, Accept waits for the end of
// another file, or of the listener.
func TestFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	strangers := NewStrangers(Most)
	at := listen(t, strangers)
	_, first := connect(t, at)
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	next, err := syscall.Dup(0) // the number of the next file
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Close(next)
	few := before
	few.Cur = uint64(next)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	accepted, err := at.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if isOpen(first) || strangers.Closed() != 1 {
		t.Errorf("closed %d, want the oldest one", strangers.Closed())
	}
	accepted.(*Conn).Shown()
	ended := make(chan error)
	go func() {
		_, err := at.Accept()
		ended <- err
	}()
	_ = at.Close()
	if err := <-ended; err == nil {
		t.Error("Accept returned no error after Close")
	}
}

// With few files the limit is lower, and depends on the other connections.
func TestFewFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for files, want := range map[uint64][3]int{1024: {682, 582, 128}, 240: {160, 60, 30}, before.Cur: {min(Most, int(before.Cur*2/3))}} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			few := before
			few.Cur = files
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
				t.Fatal(err)
			}
			strangers := NewStrangers(Most)
			if got := [3]int{strangers.limit(0), strangers.limit(100), strangers.limit(2000)}; got != want && (want[1] > 0 || got[0] != want[0]) {
				t.Errorf("with %d files: got limits %v for 0, 100 and 2000 other connections, want %v", files, got, want)
			}
		})
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Error(err)
	}
}

// A connection counts until it is closed, once.
func TestShown(t *testing.T) {
	strangers := NewStrangers(Most)
	at := listen(t, strangers)
	_, one := connect(t, at)
	_, other := connect(t, at)
	for _, c := range []*Conn{one, one, nil} {
		c.Shown()
	}
	if strangers.open != 1 || strangers.shown != 1 {
		t.Errorf("got %d strangers and %d others, want 1 of each", strangers.open, strangers.shown)
	}
	for _, c := range []*Conn{one, one, other, other} {
		_ = c.Close()
	}
	one.Shown()
	if strangers.open != 0 || strangers.shown != 0 {
		t.Errorf("after Close: got %d strangers and %d others, want none", strangers.open, strangers.shown)
	}
}
