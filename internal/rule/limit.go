package rule

import (
	"context"
	"sync/atomic"
	"time"
)

// step is the precision of a Limit. A Limit never lasts longer than starved times its limit.
const (
	step    = 5 * time.Millisecond
	starved = 20
)

// Limit is a time limit that counts only the time in which this process runs. So a rule does not
// fail because the machine is too busy.
type Limit struct {
	limit time.Duration
	ran   atomic.Int64
}

// WithLimit returns a context that ends when the limit is reached, and the Limit. The deadline of
// the context is much later than the limit.
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

// count returns when the limit is reached or the context ends. Each tick counts as one step, even
// if more time has passed since the last tick: then this process did not run.
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
