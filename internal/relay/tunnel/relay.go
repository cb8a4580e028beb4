package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-yamux/v5"
)

// Options say what a Relay listens on and who may have its connections.
type Options struct {
	// Token is what a channel must begin with: TokenSize bytes. Required.
	Token string
	// Control is the address at which channels are accepted, a loopback one.
	// Required.
	Control string
	// Ports are the addresses whose connections are carried. The port is the name
	// by which the other end knows them.
	Ports []string
	// Health is an address that accepts connections, and closes them, while the
	// Relay is at work. Empty means none.
	Health string
	// Hold is how long a connection waits for a channel before it is reset. Zero
	// means five seconds.
	Hold time.Duration
}

// Relay listens for connections and for the channel that carries them away. Use
// Listen to make one.
type Relay struct {
	options Options
	control net.Listener
	health  net.Listener
	ports   []net.Listener

	welcoming sync.Mutex

	mu      sync.Mutex
	session *yamux.Session
	changed chan struct{} // closed when session changes
}

// Listen opens every address. Run serves them.
func Listen(options Options) (*Relay, error) {
	if len(options.Token) != TokenSize {
		return nil, fmt.Errorf("listen: the token has %d bytes, want %d", len(options.Token), TokenSize)
	}
	if options.Hold == 0 {
		options.Hold = 5 * time.Second
	}
	r := &Relay{options: options, changed: make(chan struct{})}
	err := listen(options.Control, &r.control)
	if err == nil && options.Health != "" {
		err = listen(options.Health, &r.health)
	}
	for _, address := range options.Ports {
		if err != nil {
			break
		}
		var opened net.Listener
		if err = listen(address, &opened); err == nil {
			r.ports = append(r.ports, opened)
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func listen(address string, opened *net.Listener) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	*opened = listener
	return nil
}

// Addresses are those of Options.Ports, in their order, as they were opened.
func (r *Relay) Addresses() []*net.TCPAddr {
	var addresses []*net.TCPAddr
	for _, listener := range r.ports {
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Control is the address at which channels are accepted.
func (r *Relay) Control() net.Addr { return r.control.Addr() }

// Run serves until ctx is done, when it returns nil, or until a listener fails.
// All connections are closed when it returns.
func (r *Relay) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := make(chan error, 1)
	var loops sync.WaitGroup
	loop := func(listener net.Listener, each func(*net.TCPConn)) {
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
	loop(r.control, func(channel *net.TCPConn) { tracked.Go(func() { r.take(channel, tracked) }) })
	if r.health != nil {
		loop(r.health, func(probe *net.TCPConn) { _ = probe.Close() })
	}
	for _, listener := range r.ports {
		loop(listener, func(connection *net.TCPConn) { tracked.Go(func() { r.carry(ctx, connection, tracked) }) })
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

// acceptPause is between two tries to accept a connection.
const acceptPause = 10 * time.Millisecond

// accept hands over each connection until the listener is closed.
func accept(listener net.Listener, each func(*net.TCPConn)) error {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept at %s: %w", listener.Addr(), err)
		}
		if err != nil { // too many files open: it passes
			<-time.After(acceptPause)
			continue
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			each(tcp)
		}
	}
}

// take makes an incoming connection the channel, if it knows the token.
func (r *Relay) take(channel *net.TCPConn, tracked *tracker) {
	if !tracked.add(channel) {
		return
	}
	defer tracked.remove(channel)
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

// welcome makes a channel the one. Who was welcomed last has it: to say so and to
// do so is one step.
func (r *Relay) welcome(channel *net.TCPConn) (*yamux.Session, error) {
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

// put makes a session the one, and ends the one before.
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

// drop forgets a session that has ended, unless another has its place already.
func (r *Relay) drop(session *yamux.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == session {
		r.session = nil
	}
}

// open opens a stream, once there is a channel.
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
			return nil, fmt.Errorf("carry connection: no channel: %w", context.Cause(ctx))
		}
	}
}

// carry hands one connection to the other end of the channel.
func (r *Relay) carry(ctx context.Context, connection *net.TCPConn, tracked *tracker) {
	if !tracked.add(connection) {
		return
	}
	defer tracked.remove(connection)
	stream, err := r.open(ctx)
	if err != nil {
		reset(connection)
		return
	}
	var port [2]byte
	if address, ok := connection.LocalAddr().(*net.TCPAddr); ok {
		binary.BigEndian.PutUint16(port[:], uint16(address.Port))
	}
	if _, err := stream.Write(port[:]); err != nil {
		reset(connection)
		_ = stream.Close()
		return
	}
	splice(connection, stream)
}

func (r *Relay) close() {
	for _, listener := range append([]net.Listener{r.control, r.health}, r.ports...) {
		if listener != nil {
			_ = listener.Close()
		}
	}
}
