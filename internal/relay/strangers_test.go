package relay

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// What the relay loses is known here.
func TestLostConnections(t *testing.T) {
	s := &Service{}
	for _, count := range []int{0, 3, 3, 1} { // another pod begins again
		s.noteLost(count)
	}
	if got := s.LostConnections(); got != 2 {
		t.Errorf("got %d changes, want 2", got)
	}
	s.listeners = []hook.Listener{{Address: "127.0.0.1:1"}}
	if _, err := s.dialHooks(t.Context(), firstPodPort); err == nil || s.LostConnections() != 3 {
		t.Errorf("after %v: got %d, want 3: a connection could not be dialled", err, s.LostConnections())
	}
}
