package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/libp2p/go-yamux/v5"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// Relay listens for connections. Use Listen to create one.
type Relay struct {
	visitors *processes.Limit
	ports    []net.Listener
}

// Listen listens on all addresses. Run accepts the connections.
func Listen(addresses ...string) (*Relay, error) {
	r := &Relay{visitors: processes.NewLimit(processes.MostConnections)}
	for _, address := range addresses {
		opened, err := r.visitors.Listen(context.Background(), address)
		if err != nil {
			r.close()
			return nil, err
		}
		r.ports = append(r.ports, opened)
	}
	return r, nil
}

// Addresses returns the addresses of Listen, in their order, with the actual ports.
func (r *Relay) Addresses() []*net.TCPAddr {
	var addresses []*net.TCPAddr
	for _, listener := range r.ports {
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Run sends all connections through a channel, until ctx ends or the channel or a listener fails. The other end gets the
// port number of each. It closes all connections and the channel before it returns.
func (r *Relay) Run(ctx context.Context, channel io.ReadWriteCloser) error {
	defer r.close()
	if _, err := io.WriteString(channel, welcome); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	session, err := yamux.Server(carrier{channel}, multiplexing(), nil)
	if err != nil {
		return err
	}
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	for _, listener := range r.ports {
		running.Go(func() {
			for {
				accepted, err := listener.Accept()
				if err != nil {
					end(fmt.Errorf("accept at %s: %w", listener.Addr(), err))
					return
				}
				connection := accepted.(*processes.Conn) //nolint:forcetypeassert // it is a listener of a Limit
				running.Go(func() {
					defer context.AfterFunc(serving, func() { reset(connection.TCPConn) })()
					defer func() { _ = connection.Close() }()
					r.carry(serving, session, connection)
				})
			}
		})
	}
	select {
	case <-serving.Done():
	case <-session.CloseChan():
		end(errBroke)
	}
	r.close()
	_ = session.Close()
	running.Wait()
	return context.Cause(serving)
}

// carry forwards one connection to the other end of the channel. If other clients make so many connections that one must
// wait, it closes the channel: what runs then says nothing about the webhooks, and the other end knows it.
func (r *Relay) carry(ctx context.Context, session *yamux.Session, connection *processes.Conn) {
	if r.visitors.Full() > 0 {
		_ = session.Close()
	}
	_ = connection.SetLinger(0) // so that Close resets, until all is forwarded
	stream, err := session.OpenStream(ctx)
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
	for _, listener := range r.ports {
		_ = listener.Close()
	}
}

// splice copies between a connection and its stream until both directions end, and closes
// both. If one direction ends with an error, it resets both.
func splice(connection *net.TCPConn, stream *yamux.Stream) {
	abort := func() {
		_ = stream.Reset()
		reset(connection)
	}
	var outward sync.WaitGroup
	outward.Go(func() {
		if _, err := io.Copy(stream, connection); err != nil {
			abort()
		}
		_ = stream.CloseWrite()
	})
	if _, err := io.Copy(connection, stream); err != nil {
		abort()
	}
	_ = connection.CloseWrite()
	outward.Wait()
	_ = connection.Close()
	_ = stream.Close()
}

func reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}
