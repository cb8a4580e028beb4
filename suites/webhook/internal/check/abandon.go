package check

import (
	"context"
	"time"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/processes"
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
