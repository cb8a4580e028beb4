package processes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// blocked closes running, and waits until end is closed.
func blocked(running chan<- struct{}, end <-chan struct{}) {
	close(running)
	<-end
}

func TestLabelFindsItsOwnGoroutines(t *testing.T) {
	label, other := processes.NewLabel(), processes.NewLabel()
	running, end := make(chan struct{}), make(chan struct{})
	label.Do(func() { go blocked(running, end) })
	<-running
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	left := label.WaitUntilGone(short)
	if len(left) != 1 || !strings.HasPrefix(left[0], "1 × ") || !strings.Contains(left[0], "processes_test.blocked (goroutines_test.go:") {
		t.Errorf("goroutines of the label are %q, want one that names blocked", left)
	}
	if left := other.Running(); len(left) != 0 {
		t.Errorf("goroutines of another label are %q, want none", left)
	}
	close(end)
	if left := label.WaitUntilGone(t.Context()); len(left) != 0 {
		t.Errorf("after their end, goroutines of the label are %q, want none", left)
	}
}

func TestSetEndsWithUnset(t *testing.T) {
	label := processes.NewLabel()
	unset := label.Set(t.Context())
	if len(label.Running()) != 1 {
		t.Error("this goroutine has the label and was not found")
	}
	unset()
	if left := label.Running(); len(left) != 0 {
		t.Errorf("after unset the label is still found: %q", left)
	}
}

func TestWaitUntilGoneCallsAgain(t *testing.T) {
	calls := 0
	left := processes.WaitUntilGone(t.Context(), func() []string {
		calls++
		return []string{"one", "two"}[min(calls-1, 2):]
	})
	if len(left) != 0 || calls != 3 {
		t.Errorf("%d calls and %q, want 3 calls and nothing", calls, left)
	}
}

// TestWaitUntilGoneLooksLast: a goroutine that ends in the pause before the end of the context is not left.
func TestWaitUntilGoneLooksLast(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	left := processes.WaitUntilGone(ctx, func() []string {
		if ctx.Err() != nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a look on a busy machine: the pause after it lasts longer than the context
		return []string{"one"}
	})
	if len(left) != 0 {
		t.Errorf("got %q, want nothing: it has ended before the end of the context", left)
	}
}
