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
)

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
