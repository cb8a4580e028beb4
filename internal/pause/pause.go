// Package pause is about pauses of this process: it was stopped (SIGSTOP, a debugger), its container was
// frozen, or the machine slept. Clocks go on meanwhile, so limits of time end although nothing is wrong, and
// API servers do not wait for the Hooks.
//
// # Promise
//
// A limit of [WithTimeout] does not end because of a pause, and a [Watch] notices each pause that is longer
// than [Shortest].
//
// # Not promised
//
// A process that runs again does not run at once: a machine that has too much to do is like a short pause.
package pause

import (
	"context"
	"sync"
	"time"
)

// Shortest is the shortest time without running that is a pause.
const Shortest = 2 * time.Second

// Watch notices pauses. Use Start.
type Watch struct {
	mu sync.Mutex
	// seen is when the process was last seen to run, and ended the end of the last pause.
	seen, ended time.Time
}

// Start returns a Watch that notices pauses until the context is done.
func Start(ctx context.Context) *Watch {
	w := &Watch{seen: time.Now()}
	go func() {
		ticker := time.NewTicker(Shortest / 4)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.Since(time.Now())
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// Since reports whether a pause ended after a time.
func (w *Watch) Since(begin time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	// The monotonic clock can stop while a machine sleeps, and the other one can be set back.
	if max(now.Sub(w.seen), now.Round(0).Sub(w.seen.Round(0))) > Shortest {
		w.ended = now
	}
	w.seen = now
	return w.ended.After(begin)
}

// parts is the number of parts of a limit. A pause takes at most two of them.
const parts = 100

// WithTimeout returns a context that is canceled, with the cause context.DeadlineExceeded, after this process
// ran for a time. Pauses do not count.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		ticker := time.NewTicker(max(limit/parts, 1))
		defer ticker.Stop()
		for range parts {
			select {
			case <-ticker.C: // it drops ticks that were not received
			case <-ctx.Done():
				return
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
