package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

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
	Health string
}

// Relay listens for connections, and for the channel through which it sends them. Use Listen
// to create one.
type Relay struct {
	token string
	// visitors limits the connections to the ports, and channels those to control and health.
	visitors, channels *processes.Limit
	control, health    net.Listener
	ports              []net.Listener

	mu      sync.Mutex
	session *yamux.Session // the channel, or nil
}

// Listen listens on all addresses. Run serves them.
func Listen(options Options) (*Relay, error) {
	if len(options.Token) != TokenSize {
		return nil, fmt.Errorf("listen: the token has %d bytes, want %d", len(options.Token), TokenSize)
	}
	r := &Relay{token: options.Token, visitors: processes.NewLimit(processes.MostConnections), channels: processes.NewLimit(processes.FewConnections)}
	if err := r.listen(options); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *Relay) listen(options Options) (err error) {
	ctx := context.Background()
	if r.control, err = r.channels.Listen(ctx, options.Control); err != nil {
		return err
	}
	if r.health, err = r.channels.Listen(ctx, options.Health); err != nil {
		return err
	}
	for _, address := range options.Ports {
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
	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	loop := func(listener net.Listener, each func(context.Context, *processes.Conn)) {
		running.Go(func() {
			for {
				accepted, err := listener.Accept()
				if err != nil {
					cancel(fmt.Errorf("accept at %s: %w", listener.Addr(), err))
					return
				}
				connection := accepted.(*processes.Conn) //nolint:forcetypeassert // it is a listener of a Limit
				running.Go(func() {
					defer context.AfterFunc(serving, func() { reset(connection.TCPConn) })()
					defer func() { _ = connection.Close() }()
					each(serving, connection)
				})
			}
		})
	}
	loop(r.control, r.take)
	loop(r.health, func(context.Context, *processes.Conn) {})
	for _, listener := range r.ports {
		loop(listener, r.carry)
	}
	<-serving.Done()
	r.close()
	r.end()
	running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

// take makes a connection the channel, if it sends the token.
func (r *Relay) take(_ context.Context, connection *processes.Conn) {
	if err := admit(connection, r.token); err != nil {
		return
	}
	session, err := r.open(connection)
	if err != nil {
		return
	}
	<-session.CloseChan()
}

// open makes a connection the channel. Connections to the ports wait until that is done: the other end knows that it is.
func (r *Relay) open(connection *processes.Conn) (*yamux.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := answer(connection); err != nil {
		return nil, err
	}
	session, err := yamux.Server(connection, multiplexing(), nil)
	if err != nil {
		return nil, err
	}
	if r.session != nil {
		_ = r.session.Close()
	}
	r.session = session
	return session, nil
}

// end closes the channel.
func (r *Relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil {
		_ = r.session.Close()
	}
	r.session = nil
}

// carry forwards one connection to the other end of the channel. Without a channel it resets the connection. If other
// clients make so many connections that one must wait, it closes the channel: what runs then says nothing about the
// webhooks, and the other end knows it.
func (r *Relay) carry(ctx context.Context, connection *processes.Conn) {
	if r.visitors.Full() > 0 {
		r.end()
	}
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	_ = connection.SetLinger(0) // so that Close resets, until all is forwarded
	if session == nil {
		return
	}
	stream, err := session.Open(ctx)
	if err != nil {
		return
	}
	var number uint16
	if address, ok := connection.LocalAddr().(*net.TCPAddr); ok {
		number = uint16(address.Port) //nolint:gosec // ports have 16 bits
	}
	if err := binary.Write(stream, binary.BigEndian, number); err != nil {
		_ = stream.Close()
		return
	}
	_ = connection.SetLinger(-1)
	splice(connection.TCPConn, stream)
}

func (r *Relay) close() {
	for _, listener := range append([]net.Listener{r.control, r.health}, r.ports...) {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

func reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}
