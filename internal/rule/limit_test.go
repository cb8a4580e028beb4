package rule

import (
	"context"
	"testing"
	"time"
)

// However long the process waits between two ticks, it is one step.
func TestLimit(t *testing.T) {
	l := &Limit{limit: 4 * step}
	ticks := make(chan time.Time)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.count(t.Context(), ticks)
	}()
	late := l.halfLeft()
	now := time.Now()
	for n := range 4 {
		if n != 2 && late() != (n > 2) { // the second step can still be on its way
			t.Errorf("after %d steps: half of the time has passed: %t", n, late())
		}
		select {
		case ticks <- now.Add(time.Duration(n) * time.Hour):
		case <-done:
			t.Fatalf("the limit of 4 steps was reached after %d", n)
		}
	}
	<-done
	if l.elapsed() != l.limit || !late() {
		t.Errorf("got %s; want %s", l.elapsed(), l.limit)
	}
}

func TestLimitEndsTheContext(t *testing.T) {
	ctx, _, cancel := WithLimit(context.Background(), 3*step)
	defer cancel()
	<-ctx.Done()
	ended, l, cancel := WithLimit(context.Background(), time.Hour)
	cancel()
	<-ended.Done()
	if l.elapsed() >= l.limit {
		t.Errorf("a canceled limit was reached: %s", l.elapsed())
	}
}
