package check

import (
	"context"
	"sync/atomic"
	"time"
)

// step is how precisely Limit measures. starved is how many times longer than its limit it can last.
const (
	step    = 5 * time.Millisecond
	starved = 20
)

// Limit is a time limit that counts only the time in which this process runs: a plugin is not to blame
// for a machine that is too busy to run it.
type Limit struct {
	limit time.Duration
	ran   atomic.Int64
}

// WithLimit returns a context that ends when the limit is reached, with its Limit. Its deadline is much later.
func WithLimit(parent context.Context, limit time.Duration) (context.Context, *Limit, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, starved*limit)
	l := &Limit{limit: limit}
	go func() {
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		l.count(ctx, ticker.C)
		cancel()
	}()
	return ctx, l, cancel
}

// count counts steps, and returns when the limit is reached or the context ends. The time between two
// ticks counts as one step: if it is longer, this process had to wait.
func (l *Limit) count(ctx context.Context, ticks <-chan time.Time) {
	for l.elapsed() < l.limit {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			l.ran.Add(int64(step))
		}
	}
}

func (l *Limit) elapsed() time.Duration { return time.Duration(l.ran.Load()) }

// halfLeft returns a function that reports whether half of the time that is left now has passed.
func (l *Limit) halfLeft() func() bool {
	half := (l.elapsed() + l.limit) / 2
	return func() bool { return l.elapsed() >= half }
}
