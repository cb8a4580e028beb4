package target

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// after returns after a time, or when ctx is done.
func after(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An API server is gone if no good answer arrives for some time, and not if it is slow, restarts, or only
// some of the answers are lost.
func TestWhileAnswers(t *testing.T) {
	const run = 10 * time.Minute
	bad := errors.New("connection refused")
	for name, test := range map[string]struct {
		// alive is called with the number of the question and the time since the beginning.
		alive func(ctx context.Context, number int64, since time.Duration) error
		took  time.Duration
	}{
		"good":  {func(context.Context, int64, time.Duration) error { return nil }, run},
		"slow":  {func(ctx context.Context, _ int64, _ time.Duration) error { return after(ctx, 25*time.Second) }, run},
		"bad":   {func(context.Context, int64, time.Duration) error { return bad }, Silence},
		"hangs": {func(ctx context.Context, _ int64, _ time.Duration) error { return after(ctx, time.Hour) }, Silence},
		"bad too late": {func(ctx context.Context, _ int64, _ time.Duration) error {
			return errors.Join(after(ctx, 20*time.Second), bad)
		}, Silence},
		"restarts": {func(_ context.Context, _ int64, since time.Duration) error {
			if since%time.Minute < Silence-2*question {
				return bad
			}
			return nil
		}, run},
		"most are lost": {func(ctx context.Context, number int64, _ time.Duration) error {
			if number%8 > 0 {
				return after(ctx, time.Hour)
			}
			return nil
		}, run},
		"ends later": {func(_ context.Context, _ int64, since time.Duration) error {
			if since > time.Minute {
				return bad
			}
			return nil
		}, time.Minute + Silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var asked atomic.Int64
				err := WhileAnswers(t.Context(), func(ctx context.Context) error {
					return test.alive(ctx, asked.Add(1), time.Since(began))
				}, func(ctx context.Context) error { return after(ctx, run) })
				if took := time.Since(began); took != test.took || errors.Is(err, ErrGone) != (took != run) {
					t.Errorf("it ended after %s with %v, want %s", took, err, test.took)
				}
			})
		})
	}
}
