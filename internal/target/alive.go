package target

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The limits of WhileAnswers: how long an API server may not answer, which is longer than it takes to restart,
// and the time between two questions.
const (
	Silence  = 30 * time.Second
	question = Silence / 10
)

// WhileAnswers is WhileRuns for an API server whose end is no event. Alive asks it for an answer, and the
// server has ended if none of the answers within Silence is good. The time for which this process is paused
// does not count.
func WhileAnswers(ctx context.Context, alive, do func(context.Context) error) error {
	return until(ctx, func(ctx context.Context) error { return silence(ctx, alive) }, do)
}

// silence asks until no answer within Silence is good, and returns the last error, or nil when ctx is done. It does not
// wait for an answer before the next question: an answer may be slow, and one that a lost connection never brings must
// not hide the others.
func silence(ctx context.Context, alive func(context.Context) error) error {
	ticker := time.NewTicker(question)
	defer ticker.Stop()
	answers := make(chan error)
	last := errors.New("it did not answer")
	for asked := 0; asked < int(Silence/question); {
		select {
		case <-ctx.Done():
			return nil
		case err := <-answers:
			if err == nil {
				asked = 0
			} else {
				last = err
			}
		case <-ticker.C: // a paused process receives one of them
			asked++
			go func() {
				err := alive(ctx)
				select {
				case answers <- err:
				case <-ctx.Done():
				}
			}()
		}
	}
	return fmt.Errorf("for %s, each request failed: %w", Silence, last)
}
