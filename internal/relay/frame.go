package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Special lengths of a frame.
const (
	lengthEnd   = 0
	lengthReset = 0xffffffff
)

// frameHeader is the size of a length and frameLimit the maximum of a frame, in bytes.
const (
	frameHeader = 4
	frameLimit  = 8 << 10
)

// errReset means: the sender reset its connection.
var errReset = errors.New("connection was reset")

// frames copies a connection to a stream in frames, and then its end or reset.
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
			return sendLength(stream, lengthEnd)
		case err != nil:
			return errors.Join(errReset, sendLength(stream, lengthReset))
		}
	}
}

// sendLength sends a special length.
func sendLength(stream io.Writer, value uint32) error {
	var encoded [frameHeader]byte
	binary.BigEndian.PutUint32(encoded[:], value)
	if _, err := stream.Write(encoded[:]); err != nil {
		return fmt.Errorf("send to channel: %w", err)
	}
	return nil
}

// unframe copies frames from a stream to a connection. It returns nil at the end of the
// sender's connection, errReset at its reset, and another error if the channel breaks.
func unframe(connection io.Writer, stream io.Reader) error {
	buffer := make([]byte, frameLimit)
	for {
		if _, err := io.ReadFull(stream, buffer[:frameHeader]); err != nil {
			return fmt.Errorf("receive from channel: %w", err)
		}
		size := binary.BigEndian.Uint32(buffer)
		switch {
		case size == lengthEnd:
			return nil
		case size == lengthReset:
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

// splice copies between a connection and its stream until both directions end, and closes
// both. If one direction ends with an error, it resets the connection.
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
