package processes

import (
	"context"
	"sync"
	"time"
)

// ShortestPause is the shortest time without running that is a pause.
const ShortestPause = 2 * time.Second

// PauseWatch notices pauses. Use WatchPauses.
type PauseWatch struct {
	mu sync.Mutex
	// seen is when the process was last seen to run, and ended the end of the last pause.
	seen, ended time.Time
}

// WatchPauses returns a Watch that notices pauses until the context is done.
func WatchPauses(ctx context.Context) *PauseWatch {
	w := &PauseWatch{seen: time.Now()}
	go func() {
		ticker := time.NewTicker(ShortestPause / 4)
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
func (w *PauseWatch) Since(begin time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	// The monotonic clock can stop while a machine sleeps, and the other one can be set back.
	if max(now.Sub(w.seen), now.Round(0).Sub(w.seen.Round(0))) > ShortestPause {
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
