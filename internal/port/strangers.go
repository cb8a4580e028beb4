package port

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Most is the limit for an API server that calls many webhooks at the same time.
	Most = 2000
	// Few is the limit for a client with a few connections.
	Few = 50
	// defaultFiles is how many files this process can open if that is not known.
	defaultFiles = 1024
	// silence is how long a connection is silent that certainly does not come from an API server, which
	// begins its TLS handshake at once.
	silence = 3 * time.Second
	// acceptPause is the time between two attempts to accept a connection if no more files can be opened.
	acceptPause = 5 * time.Millisecond
)

// Strangers are the open connections of listeners whose clients have not yet shown that they know a secret:
// see Conn.Shown. There is a limit for them, and none for the others. If there is one too many, the oldest one of
// the listener that has the most is reset. So a client that shows the secret soon after it connected gets
// through, however many connections others hold. NewStrangers makes one.
type Strangers struct {
	most, files int

	mu     sync.Mutex
	doors  []*door
	open   int
	shown  int // of the connections that are open and no strangers
	closed int
	lost   int
}

// NewStrangers returns Strangers without listeners. Most is the limit. It is less if this process can only open few
// files: all connections together get two thirds of them, and strangers at least an eighth.
func NewStrangers(most int) *Strangers { return &Strangers{most: most, files: maxFiles()} }

// Limit returns how many strangers there can be if there are no other connections.
func (s *Strangers) Limit() int { return s.limit(0) }

func (s *Strangers) limit(shown int) int {
	return max(1, min(s.most, max(s.files/8, s.files*2/3-shown))) //nolint:mnd // see NewStrangers
}

// Closed returns the number of connections that were reset because there were too many.
func (s *Strangers) Closed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Lost returns the number of connections that were reset or that the system refused, and that can have been those
// of a client that knows the secret. Others were open for seconds and had sent nothing.
func (s *Strangers) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	for _, one := range s.doors {
		lost += one.refused()
	}
	return lost
}

// Listen listens on a TCP address. See Listener.
func (s *Strangers) Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // its sockets do not count the connections that the system refuses
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return s.Listener(listener)
}

// Listener returns a listener that accepts the connections of a TCP listener. Each begins as a stranger, and is a
// *Conn. Accept waits if no more files can be opened; it only returns an error when the listener is closed.
// If there is an error, the TCP listener is closed.
func (s *Strangers) Listener(of net.Listener) (net.Listener, error) {
	tcp, ok := of.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: got a listener of type %T, want TCP", of.Addr(), of), of.Close())
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", of.Addr(), err), of.Close())
	}
	made := &door{TCPListener: tcp, raw: raw, all: s, ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors = append(s.doors, made)
	return made, nil
}

// door is one of the listeners of Strangers.
type door struct {
	*net.TCPListener

	raw   syscall.RawConn
	all   *Strangers
	end   sync.Once
	ended chan struct{}
	// The lock of all guards the fields below.
	strangers list.List // of *Conn, the oldest first
	last      int       // see refused
}

// Accept returns the next connection.
func (d *door) Accept() (net.Conn, error) {
	for {
		accepted, err := d.AcceptTCP()
		switch {
		case err == nil:
			return d.all.add(d, accepted), nil
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case d.all.makeRoom():
			continue
		}
		pause := time.NewTimer(acceptPause)
		select {
		case <-pause.C:
		case <-d.ended:
			pause.Stop()
		}
	}
}

// Close ends the listener. Its connections stay open.
func (d *door) Close() error {
	d.all.mu.Lock()
	d.refused()
	d.all.mu.Unlock()
	d.end.Do(func() { close(d.ended) })
	return d.TCPListener.Close()
}

// refused returns the number of connections that the system did not pass on, because too many waited to be accepted.
// If the listener is closed, it is the last known number.
func (d *door) refused() int {
	if count, ok := queueDrops(d.raw); ok {
		d.last = count
	}
	return d.last
}

// add adds a connection.
func (s *Strangers) add(d *door, accepted *net.TCPConn) *Conn {
	made := &Conn{Conn: accepted, tcp: accepted, door: d, since: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	made.element = d.strangers.PushBack(made)
	if s.open++; s.open > s.limit(s.shown) {
		s.dropOne()
	}
	return made
}

// makeRoom resets a connection after one could not be accepted. It reports whether there was one.
func (s *Strangers) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open > 0 && s.dropOne()
}

// dropOne resets the oldest connection of the listener that has the most. The caller holds s.mu.
func (s *Strangers) dropOne() bool {
	fullest := s.doors[0]
	for _, one := range s.doors {
		if one.strangers.Len() > fullest.strangers.Len() {
			fullest = one
		}
	}
	dropped := fullest.strangers.Front().Value.(*Conn) //nolint:forcetypeassert // see add
	s.remove(dropped)
	s.closed++
	if dropped.spoke.Load() || time.Since(dropped.since) < silence {
		s.lost++
	}
	_ = dropped.tcp.SetLinger(0)
	_ = dropped.tcp.Close()
	return true
}

// remove removes a connection, if it is a stranger, and reports whether it was one. The caller holds s.mu.
func (s *Strangers) remove(c *Conn) bool {
	if c.element == nil {
		return false
	}
	c.door.strangers.Remove(c.element)
	c.element = nil
	s.open--
	return true
}

// Conn is a connection of a listener of Strangers.
type Conn struct {
	net.Conn // tcp, without the methods that read and are not Read

	tcp   *net.TCPConn
	door  *door
	since time.Time
	spoke atomic.Bool // it has sent something
	// The lock of Strangers guards the fields below.
	element *list.Element // in door.strangers, or nil
	shown   bool          // the client has shown the secret, and the connection is open
}

// Shown says that the client has shown the secret. The connection does not count any longer, and is not reset.
// For nil it does nothing.
func (c *Conn) Shown() {
	if c == nil {
		return
	}
	all := c.door.all
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.remove(c) {
		c.shown = true
		all.shown++
	}
}

// Read reads from the connection.
func (c *Conn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
	}
	return n, err
}

// TCP returns the connection itself, which can be used when its client has shown the secret.
func (c *Conn) TCP() *net.TCPConn { return c.tcp }

// Close closes the connection.
func (c *Conn) Close() error {
	all := c.door.all
	all.mu.Lock()
	if all.remove(c); c.shown {
		c.shown = false
		all.shown--
	}
	all.mu.Unlock()
	return c.Conn.Close()
}

// Reset closes the connection with a TCP reset.
func (c *Conn) Reset() error {
	return errors.Join(c.tcp.SetLinger(0), c.Close())
}
