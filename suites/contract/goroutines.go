package contract

import (
	"context"
	"time"

	"github.com/admissiontest/admissiontest/internal/goroutines"
)

// goroutinesLeft waits at most this long for goroutines to end, and returns those that
// still run.
func goroutinesLeft(ctx context.Context, limit time.Duration, running func() []string) []string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return goroutines.WaitUntilGone(ctx, running)
}

// poll calls done until it returns true, and reports whether it did so within the limit.
func poll(ctx context.Context, limit time.Duration, done func() bool) bool {
	return len(goroutinesLeft(ctx, limit, func() []string {
		if done() {
			return nil
		}
		return []string{"not yet"}
	})) == 0
}
