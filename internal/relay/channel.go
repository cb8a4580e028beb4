package relay

import (
	"context"
	"crypto/subtle"
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

// TokenSize is the length of a token in bytes.
const TokenSize = 64

// greeting is sent before the token and names the protocol. welcome is the answer to both.
const (
	greeting = "admissiontest relay 3\n"
	welcome  = "welcome\n"
)

// greetLimit is the limit for the greeting of a channel.
const greetLimit = 10 * time.Second

// ErrRefused means: the Relay does not accept the token.
var ErrRefused = errors.New("the relay refuses the token")

// Greet prepares a channel for Serve: it sends the token and waits for the answer of the Relay,
// for at most ten seconds or until ctx ends. The error is an ErrRefused if the Relay closes
// the channel.
func Greet(ctx context.Context, channel io.ReadWriteCloser, token string) error {
	if len(token) != TokenSize {
		return fmt.Errorf("greet relay: the token has %d bytes, want %d", len(token), TokenSize)
	}
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = channel.Close() })()
	answer := make([]byte, len(welcome))
	_, err := io.WriteString(channel, greeting+token)
	if err == nil {
		_, err = io.ReadFull(channel, answer)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("greet relay: no answer: %w", context.Cause(ctx))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("greet relay: %w", ErrRefused)
	case err != nil:
		return fmt.Errorf("greet relay: %w", err)
	case string(answer) != welcome:
		return fmt.Errorf("greet relay: got %q, want %q: another program uses the port", answer, welcome)
	}
	return nil
}

// admit is the first half of the Relay's side of Greet: it reads and compares the token.
func admit(channel net.Conn, token string) error {
	if err := channel.SetDeadline(time.Now().Add(greetLimit)); err != nil {
		return fmt.Errorf("admit channel: %w", err)
	}
	received := make([]byte, len(greeting)+TokenSize)
	if _, err := io.ReadFull(channel, received); err != nil {
		return fmt.Errorf("admit channel: %w", err)
	}
	if subtle.ConstantTimeCompare(received, []byte(greeting+token)) != 1 {
		return fmt.Errorf("admit channel: %w", ErrRefused)
	}
	return nil
}

// answer is the second half: it welcomes the channel.
func answer(channel net.Conn) error {
	if _, err := io.WriteString(channel, welcome); err != nil {
		return fmt.Errorf("admit channel: %w", err)
	}
	return channel.SetDeadline(time.Time{})
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
		stream, err := session.Accept()
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
			return fmt.Errorf("serve channel: the channel broke: %w", err)
		}
	}
}

// serveStream forwards one connection. The error is that of dial.
func serveStream(ctx context.Context, stream net.Conn, dial Dial) error {
	defer func() { _ = stream.Close() }()
	var number uint16
	if err := binary.Read(stream, binary.BigEndian, &number); err != nil {
		return nil // the other end closed it, or Accept says why not
	}
	connection, err := dial(ctx, int(number))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { reset(connection) })()
	splice(connection, stream)
	return nil
}
