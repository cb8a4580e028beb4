package processes

import (
	"errors"
	"net"
	"testing"
	"time"
)

// Connections above the limit wait until another one is closed, at whatever listener, and are counted.
func TestLimit(t *testing.T) {
	limit := NewLimit(2)
	accepted := make(chan net.Conn, 10)
	var addresses []string
	for range 2 {
		listener, err := limit.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, listener.Addr().String())
		ended := make(chan error)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- connection
			}
		}()
		t.Cleanup(func() {
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept: got %v, want %v", err, net.ErrClosed)
			}
		})
	}
	for i := range 3 {
		client, err := net.Dial("tcp", addresses[i%2])
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first := <-accepted
	<-accepted
	third := time.NewTimer(100 * time.Millisecond)
	defer third.Stop()
	select {
	case <-accepted:
		t.Fatal("three connections were accepted, want two")
	case <-third.C:
	}
	if limit.Full() == 0 {
		t.Error("it is not known that a connection waits")
	}
	_, _ = first.Close(), first.Close() // the second one has no effect
	<-accepted
}
