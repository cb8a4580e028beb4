package check

import (
	"context"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// GoroutinesLeft waits until running returns no goroutines, but not longer than the limit.
// It returns the goroutines that still run.
func GoroutinesLeft(ctx context.Context, limit time.Duration, running func() []string) []string {
	ctx, _, cancel := rule.WithLimit(ctx, limit)
	defer cancel()
	return processes.WaitUntilGone(ctx, running)
}

// Poll calls done until it returns true. It returns false if that takes longer than the
// limit.
func Poll(ctx context.Context, limit time.Duration, done func() bool) bool {
	left := GoroutinesLeft(ctx, limit, func() []string {
		if done() {
			return nil
		}
		return []string{"not done"}
	})
	return len(left) == 0
}
