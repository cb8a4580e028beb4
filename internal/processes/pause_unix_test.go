//go:build unix

package processes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// stop stops this process for 5 seconds.
func stop(t *testing.T) {
	t.Helper()
	resume := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 5; kill -CONT $PPID")
	if err := resume.Start(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	if err := resume.Wait(); err != nil {
		t.Error(err)
	}
}

// A pause is noticed, also before the next tick, and does not count in a limit.
func TestPause(t *testing.T) {
	watch, began := WatchPauses(t.Context()), time.Now()
	limited, cancel := WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if watch.Since(began) {
		t.Error("a pause without one")
	}
	stop(t)
	if took := time.Since(began); took < 4*time.Second {
		t.Fatalf("this process was stopped for %s, want 5s", took)
	}
	if !watch.Since(began) || watch.Since(time.Now()) {
		t.Error("the pause was not noticed, or is not over")
	}
	if limited.Err() != nil {
		t.Error("the limit ended in the pause")
	}
	<-limited.Done()
	if err := context.Cause(limited); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < 6*time.Second {
		t.Errorf("the limit ended after %s with %v", time.Since(began), err)
	}
}

func TestWithTimeoutCanceled(t *testing.T) {
	limited, cancel := WithTimeout(t.Context(), time.Hour)
	cancel()
	if err := context.Cause(limited); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
