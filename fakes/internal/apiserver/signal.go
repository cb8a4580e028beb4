package apiserver

// Signal wakes any number of goroutines after a change. It is guarded by the lock of the Store. The
// zero value is ready to use.
type Signal struct{ next chan struct{} }

// Wait returns a channel that the next Raise closes.
func (s *Signal) Wait() <-chan struct{} {
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Raise wakes the goroutines that wait.
func (s *Signal) Raise() {
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}
