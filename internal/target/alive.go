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
	asking, stop := context.WithCancel(ctx)
	defer stop()
	s := &silent{alive: alive, ended: make(chan struct{})}
	go s.watch(asking)
	return WhileRuns(ctx, s, do)
}

// silent is the Ending of an API server that is asked.
type silent struct {
	alive func(context.Context) error
	ended chan struct{}
	err   error // valid after ended is closed
}

// Ended returns a channel that is closed when the API server has not answered for a while. See Ending.
func (s *silent) Ended() <-chan struct{} { return s.ended }

// Err returns the last error. See Ending.
func (s *silent) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// watch asks until the API server has ended. It does not wait for an answer before the next question: an
// answer may be slow, and one that a lost connection never brings must not hide the others.
func (s *silent) watch(ctx context.Context) {
	ticker := time.NewTicker(question)
	defer ticker.Stop()
	answers := make(chan error)
	last := errors.New("it did not answer")
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return
		case err := <-answers:
			if err == nil {
				asked = 0
			} else {
				last = err
			}
			continue
		case <-ticker.C: // a paused process receives one of them
		}
		if asked++; asked == int(Silence/question) {
			s.err = fmt.Errorf("for %s, each request failed: %w", Silence, last)
			close(s.ended)
			return
		}
		go func() {
			err := s.alive(ctx)
			select {
			case answers <- err:
			case <-ctx.Done():
			}
		}()
	}
}
