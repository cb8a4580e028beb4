package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Words in the place of a frame's length.
const (
	wordEnd   = 0
	wordReset = 0xffffffff
)

// frameHeader is the size of a length, frameLimit the most bytes of a frame.
const (
	frameHeader = 4
	frameLimit  = 32 << 10
)

// errReset is how a direction ends whose sender reset its connection.
var errReset = errors.New("connection was reset")

// frames sends what a connection says until it ends, and how it ends.
func frames(stream io.Writer, connection io.Reader) error {
	buffer := make([]byte, frameHeader+frameLimit)
	for {
		n, err := connection.Read(buffer[frameHeader:])
		if n > 0 {
			binary.BigEndian.PutUint32(buffer, uint32(n))
			if _, err := stream.Write(buffer[:frameHeader+n]); err != nil {
				return fmt.Errorf("send to channel: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return word(stream, wordEnd)
		case err != nil:
			return errors.Join(errReset, word(stream, wordReset))
		}
	}
}

// word sends a length that is none.
func word(stream io.Writer, value uint32) error {
	var encoded [frameHeader]byte
	binary.BigEndian.PutUint32(encoded[:], value)
	if _, err := stream.Write(encoded[:]); err != nil {
		return fmt.Errorf("send to channel: %w", err)
	}
	return nil
}

// unframe writes to a connection what frames has sent. The end of the sender is
// nil; its reset, and a channel that breaks off, are errors.
func unframe(connection io.Writer, stream io.Reader) error {
	buffer := make([]byte, frameLimit)
	for {
		if _, err := io.ReadFull(stream, buffer[:frameHeader]); err != nil {
			return fmt.Errorf("receive from channel: %w", err)
		}
		size := binary.BigEndian.Uint32(buffer)
		switch {
		case size == wordEnd:
			return nil
		case size == wordReset:
			return errReset
		case size > frameLimit:
			return fmt.Errorf("receive from channel: got a frame of %d bytes, want at most %d", size, frameLimit)
		}
		if _, err := io.ReadFull(stream, buffer[:size]); err != nil {
			return fmt.Errorf("receive from channel: %w", err)
		}
		if _, err := connection.Write(buffer[:size]); err != nil {
			return fmt.Errorf("write to connection: %w", err)
		}
	}
}

// splice joins a connection to its stream until both directions have ended, and
// closes both. It resets the connection unless both ended well.
func splice(connection *net.TCPConn, stream net.Conn) {
	var once sync.Once
	abort := func() {
		once.Do(func() {
			_ = connection.SetLinger(0) // so that Close resets
			_ = connection.Close()
		})
	}
	var outward sync.WaitGroup
	outward.Go(func() {
		if err := frames(stream, connection); err != nil {
			abort()
		}
	})
	if err := unframe(connection, stream); err != nil {
		abort()
	} else {
		_ = connection.CloseWrite()
	}
	outward.Wait()
	_ = connection.Close()
	_ = stream.Close()
}
