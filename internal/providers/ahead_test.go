package providers

import (
	"testing"

	"github.com/admissiontest/admissiontest/internal/target"
)

// When a target is closed, the API server of the next one is started. It is used only for the same kind of server, and
// Close ends it.
func TestAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("starts API servers")
	}
	provider := NewEnvtest(EnvtestOptions{Ahead: true})
	start := func(observe bool) *clusterTarget {
		t.Helper()
		started, err := provider.Start(t.Context(), target.StartOptions{ObservePlugins: observe})
		if err != nil {
			t.Fatal(err)
		}
		return started.(*clusterTarget) //nolint:forcetypeassert // a Provider of this package
	}
	end := func(one *clusterTarget) *started {
		t.Helper()
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-provider.next.done
		return provider.next.server
	}
	ended := func(s *started) bool {
		select {
		case <-s.server.Ended():
			return true
		default:
			return false
		}
	}
	first := end(start(false))
	second := start(false)
	if second.server != first.server || ended(first) {
		t.Error("the API server that was started ahead is not used")
	}
	plain := end(second)
	observed := start(true)
	if observed.server == plain.server || !ended(plain) {
		t.Error("an API server that records no calls of plugins is used for a run that needs them, or is not ended")
	}
	last := end(observed)
	if err := provider.Close(); err != nil || !ended(last) || provider.next != nil {
		t.Errorf("Close: %v; ended: %t", err, ended(last))
	}
}
