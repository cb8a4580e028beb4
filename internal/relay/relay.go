package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

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

// welcome is what a Relay sends first.
const welcome = "admissiontest relay 4\n"

// greetLimit limits the wait for it.
const greetLimit = 10 * time.Second

// errBroke is the end of a channel.
var errBroke = errors.New("the channel broke")

// Greet waits until a Relay is at the other end of a channel, for at most ten seconds or until ctx ends. After an error the
// channel is closed.
func Greet(ctx context.Context, channel io.ReadWriteCloser) error {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = channel.Close() })()
	got := make([]byte, len(welcome))
	_, err := io.ReadFull(channel, got)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("greet relay: no answer: %w", context.Cause(ctx))
	case err == nil && string(got) != welcome:
		err = fmt.Errorf("got %q, want %q: the image has another program", got, welcome)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("greet relay: %w", err), channel.Close())
	}
	return nil
}

// multiplexing returns the settings of both sides. A dead channel is detected within seconds.
func multiplexing() *yamux.Config {
	config := yamux.DefaultConfig()
	config.KeepAliveInterval = 5 * time.Second
	config.ConnectionWriteTimeout = 10 * time.Second
	config.AcceptBacklog = 1024
	config.MaxIncomingStreams = math.MaxUint32 // the API server keeps a connection for each webhook
	config.LogOutput = io.Discard              // errors are returned
	return config
}

// carrier adapts a channel to yamux. It has no deadlines: yamux detects a dead channel by its
// keep-alive.
type carrier struct{ io.ReadWriteCloser }

func (carrier) LocalAddr() net.Addr              { return nil }
func (carrier) RemoteAddr() net.Addr             { return nil }
func (carrier) SetDeadline(time.Time) error      { return nil }
func (carrier) SetReadDeadline(time.Time) error  { return nil }
func (carrier) SetWriteDeadline(time.Time) error { return nil }

// Dial dials the port to which a connection was made.
type Dial func(ctx context.Context, port int) (*net.TCPConn, error)

// Serve accepts the connections that come through a channel, after Greet. For each it calls dial, and copies in both
// directions. It returns an error when the channel breaks, dial fails or ctx ends; it closes the connections and the
// channel first.
func Serve(ctx context.Context, channel io.ReadWriteCloser, dial Dial) error {
	session, err := yamux.Client(carrier{channel}, multiplexing(), nil)
	if err != nil {
		return errors.Join(fmt.Errorf("serve channel: %w", err), channel.Close())
	}
	ctx, end := context.WithCancelCause(ctx)
	var streams sync.WaitGroup
	defer streams.Wait()
	defer end(nil)
	defer func() { _ = session.Close() }()
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	for {
		stream, err := session.AcceptStream()
		switch {
		case err == nil:
			streams.Go(func() {
				if err := serveStream(ctx, stream, dial); err != nil {
					end(err)
				}
			})
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return fmt.Errorf("serve channel: %w: %w", errBroke, err)
		}
	}
}

// serveStream forwards one connection. The error is that of dial.
func serveStream(ctx context.Context, stream *yamux.Stream, dial Dial) error {
	defer func() { _ = stream.Close() }()
	var number uint16
	if err := binary.Read(stream, binary.BigEndian, &number); err != nil {
		return nil // the other end closed it, or Accept says why not
	}
	connection, err := dial(ctx, int(number))
	if err != nil {
		_ = stream.Reset()
		return err
	}
	defer context.AfterFunc(ctx, func() { reset(connection) })()
	splice(connection, stream)
	return nil
}
