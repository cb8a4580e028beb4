package tunnel

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-yamux/v5"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// Options configure a Relay.
type Options struct {
	// Token is the secret that a channel must send, TokenSize bytes. Required.
	Token string
	// Control is the address for channels, which should be a loopback address. Required.
	Control string
	// Ports are the addresses for connections. The other end gets the port number of each
	// connection.
	Ports []string
	// Health is an address that accepts and closes connections while the Relay works.
	// Empty means none.
	Health string
	// Hold is the time that a connection waits for a channel before it is reset. Zero
	// means five seconds.
	Hold time.Duration
}

// Relay listens for connections, and for the channel through which it sends them. Use Listen
// to create one.
type Relay struct {
	options Options
	// visitors limits the connections to the ports, and channels those to control.
	visitors, channels *processes.Limit

	control net.Listener
	health  net.Listener
	ports   []net.Listener

	welcoming sync.Mutex

	mu      sync.Mutex
	session *yamux.Session
	changed chan struct{} // closed when session changes
}

// Listen listens on all addresses. Run serves them.
func Listen(options Options) (*Relay, error) {
	if len(options.Token) != TokenSize {
		return nil, fmt.Errorf("listen: the token has %d bytes, want %d", len(options.Token), TokenSize)
	}
	if options.Hold == 0 {
		options.Hold = 5 * time.Second
	}
	r := &Relay{options: options, visitors: processes.NewLimit(processes.MostConnections), channels: processes.NewLimit(processes.FewConnections), changed: make(chan struct{})}
	if err := r.listen(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *Relay) listen() (err error) {
	ctx := context.Background()
	if r.control, err = r.channels.Listen(ctx, r.options.Control); err != nil {
		return err
	}
	if r.options.Health != "" {
		if r.health, err = r.channels.Listen(ctx, r.options.Health); err != nil {
			return err
		}
	}
	for _, address := range r.options.Ports {
		opened, err := r.visitors.Listen(ctx, address)
		if err != nil {
			return err
		}
		r.ports = append(r.ports, opened)
	}
	return nil
}

// Addresses returns the addresses of Options.Ports, in their order, with the actual ports.
func (r *Relay) Addresses() []*net.TCPAddr {
	var addresses []*net.TCPAddr
	for _, listener := range r.ports {
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Control returns the address for channels.
func (r *Relay) Control() net.Addr { return r.control.Addr() }

// Run serves until ctx ends, and returns nil, or until a listener fails. It closes all
// connections before it returns.
func (r *Relay) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := make(chan error, 1)
	var loops sync.WaitGroup
	loop := func(listener net.Listener, each func(*processes.Conn)) {
		loops.Go(func() {
			if err := accept(listener, each); ctx.Err() == nil {
				select {
				case failed <- err:
				default:
				}
				cancel(err)
			}
		})
	}
	tracked := newTracker()
	loop(r.control, func(channel *processes.Conn) { tracked.Go(func() { r.take(channel, tracked) }) })
	if r.health != nil {
		loop(r.health, func(probe *processes.Conn) { _ = probe.Close() })
	}
	for _, listener := range r.ports {
		loop(listener, func(connection *processes.Conn) { tracked.Go(func() { r.carry(ctx, connection, tracked) }) })
	}
	<-ctx.Done()
	r.close()
	loops.Wait()
	r.put(nil)
	tracked.end()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// accept calls each with each connection until the listener is closed.
func accept(listener net.Listener, each func(*processes.Conn)) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept at %s: %w", listener.Addr(), err)
		}
		each(connection.(*processes.Conn)) //nolint:forcetypeassert // it is a listener of a Limit
	}
}

// take makes a connection the channel, if it sends the token.
func (r *Relay) take(channel *processes.Conn, tracked *tracker) {
	if !tracked.add(channel.TCPConn) {
		return
	}
	defer tracked.remove(channel.TCPConn)
	if err := check(channel, r.options.Token); err != nil {
		_ = channel.Close()
		return
	}
	session, err := r.welcome(channel)
	if err != nil {
		_ = channel.Close()
		return
	}
	<-session.CloseChan()
	r.drop(session)
}

// welcome answers a channel and makes it the current one. Both happen under one lock, so that
// the channel that is answered last is the current one.
func (r *Relay) welcome(channel *processes.Conn) (*yamux.Session, error) {
	r.welcoming.Lock()
	defer r.welcoming.Unlock()
	if err := admit(channel); err != nil {
		return nil, err
	}
	session, err := yamux.Server(channel, multiplexing(), nil)
	if err != nil {
		return nil, err
	}
	r.put(session)
	return session, nil
}

// put sets the current session and closes the previous one.
func (r *Relay) put(session *yamux.Session) {
	r.mu.Lock()
	before := r.session
	r.session = session
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
}

// drop removes a session that has ended, if it is the current one.
func (r *Relay) drop(session *yamux.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == session {
		r.session = nil
	}
}

// open waits for a channel and opens a stream.
func (r *Relay) open(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Hold)
	defer cancel()
	for {
		r.mu.Lock()
		session, changed := r.session, r.changed
		r.mu.Unlock()
		if session != nil {
			if stream, err := session.Open(ctx); err == nil {
				return stream, nil
			}
			r.drop(session)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("forward connection: no channel: %w", context.Cause(ctx))
		}
	}
}

// carry forwards one connection to the other end of the channel.
func (r *Relay) carry(ctx context.Context, connection *processes.Conn, tracked *tracker) {
	if !tracked.add(connection.TCPConn) {
		return
	}
	defer tracked.remove(connection.TCPConn)
	defer func() { _ = connection.Close() }() // splice closes it too, without the limit knowing
	stream, err := r.open(ctx)
	if err != nil {
		_ = connection.SetLinger(0) // the deferred Close resets it
		return
	}
	var head header
	if address, ok := connection.LocalAddr().(*net.TCPAddr); ok {
		head.Port = uint16(address.Port) //nolint:gosec // ports have 16 bits
	}
	head.Lost = uint32(r.visitors.Full()) //nolint:gosec // it can begin again at 0
	if err := binary.Write(stream, binary.BigEndian, head); err != nil {
		_ = connection.SetLinger(0) // the deferred Close resets it
		_ = stream.Close()
		return
	}
	splice(connection.TCPConn, stream)
}

func (r *Relay) close() {
	for _, listener := range append([]net.Listener{r.control, r.health}, r.ports...) {
		if listener != nil {
			_ = listener.Close()
		}
	}
}
