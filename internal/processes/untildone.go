package processes

import (
	"context"
	"time"
)

// UntilDone returns what a function returns, and true. If the function still runs some time after the end of ctx,
// UntilDone returns the zero value and false, and leaves the function running: it is for functions that compute or
// read, which nothing interrupts. A panic of the function is one of UntilDone.
func UntilDone[T any](ctx context.Context, grace time.Duration, do func() T) (value T, done bool) {
	type result struct {
		value    T
		panicked any
	}
	results := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			results <- r
		}()
		r.value = do()
	}()
	ended, late := ctx.Done(), make(<-chan time.Time)
	for {
		select {
		case r := <-results:
			if r.panicked != nil {
				panic(r.panicked) //nolint:forbidigo // it is the function's
			}
			return r.value, true
		case <-ended:
			timer := time.NewTimer(grace)
			defer timer.Stop()
			ended, late = nil, timer.C
		case <-late:
			return value, false
		}
	}
}
