package check

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/rule"
)

// Abandon sends a request to the handler, and gives up after a time. Early is whether the handler answered before. Left
// describes the goroutines of the call that are still there after the limit.
func (t *T) Abandon(r reach.Request, after, limit time.Duration) (early bool, left []string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	label, done := processes.NewLabel(), make(chan struct{})
	label.Do(func() {
		go func() {
			defer close(done)
			t.Send(ctx, t.Webhook, r) // the answer to a call that was given up does not matter
		}()
	})
	patience, stop := context.WithTimeout(ctx, after)
	defer stop()
	select {
	case <-done:
		return true, nil
	case <-patience.Done():
	}
	cancel()
	<-done
	ended, stopped := context.WithTimeout(t.Context(), limit)
	defer stopped()
	return false, label.WaitUntilGone(ended)
}

// Repeat sends a request to the handler a number of times. If at least as many goroutines of the calls are still there after the limit, it
// returns their descriptions. The handler can start some when it is called first, but not again.
func (t *T) Repeat(r reach.Request, times int, limit time.Duration) (left []string) {
	label := processes.NewLabel()
	label.Do(func() {
		for range times {
			t.Send(t.Context(), t.Webhook, r)
		}
	})
	ctx, _, cancel := rule.WithLimit(t.Context(), limit)
	defer cancel()
	return processes.WaitUntilGone(ctx, func() []string {
		running, sum := label.Running(), 0
		for _, each := range running {
			count, _, _ := strings.Cut(each, " ")
			n, _ := strconv.Atoi(count)
			sum += n
		}
		if sum < times {
			return nil
		}
		return running
	})
}

// MemoryGrowth returns how many bytes more this process needs after f. Less than none is possible.
func MemoryGrowth(f func()) int64 {
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // the first one moves what is in a sync.Pool, and the second one removes it
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc) //nolint:gosec // less than 2^63
	}
	before := inUse()
	f()
	return inUse() - before
}
