package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/processes"
)

// The intervals of Poll: for a state that takes milliseconds, and for one that takes
// up to a second.
const (
	Soon  = 5 * time.Millisecond
	Later = 25 * time.Millisecond
)

// lostLimit is how long Poll accepts that the API server does not respond: the restart of
// an API server.
const lostLimit = 15 * time.Second

// Poll calls done until it returns true or an error. A framework.ErrNoResponse only
// counts if it is returned for some time. After the limit the error is a
// framework.ErrTimeout. A pause of this process does not count.
func Poll(ctx context.Context, interval, limit time.Duration, done func() (bool, error)) error {
	var lostSince time.Time
	limited, cancel := processes.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, interval, true, func(context.Context) (bool, error) {
		ok, err := done()
		if !errors.Is(err, framework.ErrNoResponse) {
			lostSince = time.Time{}
			return ok, err
		}
		if lostSince.IsZero() {
			lostSince = time.Now()
		}
		if time.Since(lostSince) < lostLimit {
			return false, nil
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil && !errors.Is(err, framework.ErrNoResponse) {
		return fmt.Errorf("%w after %s", framework.ErrTimeout, limit)
	}
	return err
}

// refusedLimit limits how long WhileRefused repeats a request. The API server rereads
// policies every second.
const refusedLimit = 15 * time.Second

// WhileRefused repeats an administrative request while the API server refuses it: a
// policy or webhook that was deleted before can still be effective for a moment. It
// returns the last error.
func WhileRefused(ctx context.Context, request func() error) error {
	var refused error
	err := Poll(ctx, Later, refusedLimit, func() (bool, error) {
		refused = request()
		return refused == nil || errors.Is(refused, framework.ErrNoResponse), nil
	})
	if err == nil || refused != nil {
		return refused
	}
	return err
}
