package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

const (
	// MostConnections is the limit for an API server that calls many webhooks at the same time.
	MostConnections = 10000
	// FewConnections is the limit for a client with a few connections.
	FewConnections = 50
	// defaultFiles is how many files this process can open if that is not known.
	defaultFiles = 1024
)

// Limit limits the number of open connections that its listeners return together. Further connections wait
// until another one is closed. Make a Limit with NewLimit.
type Limit struct {
	room chan struct{}
	full atomic.Int64
}

// NewLimit returns a Limit for this many connections, but not for more than two thirds of the files that this
// process can open.
func NewLimit(most int) *Limit {
	return &Limit{room: make(chan struct{}, max(1, min(most, maxFiles()*2/3)))} //nolint:mnd // see above
}

// Full returns how often a listener could not return a connection at once, because there were too many.
func (l *Limit) Full() int { return int(l.full.Load()) }

// Listen listens on a TCP address. The listener accepts a *Conn.
func (l *Limit) Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ended := make(chan struct{})
	return &limited{TCPListener: listener.(*net.TCPListener), limit: l, ended: ended, end: sync.OnceFunc(func() { close(ended) })}, nil //nolint:forcetypeassert // the network is tcp
}

// limited is a listener of a Limit. (golang.org/x/net/netutil does not tell that a limit is reached.)
type limited struct {
	*net.TCPListener

	limit *Limit
	ended chan struct{}
	end   func()
}

// Accept returns the next connection. It takes the room for a connection that is there: a listener without
// connections takes none from the others.
func (l *limited) Accept() (net.Conn, error) {
	accepted, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	select {
	case l.limit.room <- struct{}{}:
	default:
		l.limit.full.Add(1)
		select {
		case l.limit.room <- struct{}{}:
		case <-l.ended:
			return nil, errors.Join(net.ErrClosed, accepted.Close())
		}
	}
	return &Conn{accepted, sync.OnceFunc(func() { <-l.limit.room })}, nil
}

// Close ends the listener. Its connections stay open.
func (l *limited) Close() error {
	l.end()
	return l.TCPListener.Close()
}

// Conn is a connection of a listener of a Limit.
type Conn struct {
	*net.TCPConn

	release func()
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.release()
	return c.TCPConn.Close()
}
