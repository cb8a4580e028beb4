package tunnel

import (
	"net"
	"sync"
)

// tracker has the open connections, so that all can be reset.
type tracker struct {
	sync.WaitGroup

	mu    sync.Mutex
	ended bool
	open  map[*net.TCPConn]bool
}

func newTracker() *tracker { return &tracker{open: map[*net.TCPConn]bool{}} }

// add adds a connection. After end it resets the connection and returns false.
func (t *tracker) add(connection *net.TCPConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		reset(connection)
		return false
	}
	t.open[connection] = true
	return true
}

func (t *tracker) remove(connection *net.TCPConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, connection)
}

// end resets all connections and waits for the goroutines that serve them.
func (t *tracker) end() {
	t.mu.Lock()
	t.ended = true
	for connection := range t.open {
		reset(connection)
	}
	t.mu.Unlock()
	t.Wait()
}

func reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}
