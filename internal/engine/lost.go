package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The limits of lost: how long an API server may take to restart, and the time between
// two questions.
const (
	restartLimit = 30 * time.Second
	restartPause = 250 * time.Millisecond
)

// lost returns a target.ErrGone if the API server itself is gone: a response was lost, and it
// does not respond for as long as a restart takes.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, framework.ErrNoResponse) {
		return nil
	}
	var gone error
	_ = wait.PollUntilContextTimeout(ctx, restartPause, restartLimit, true, func(ctx context.Context) (bool, error) {
		gone = r.target.Alive(ctx)
		return gone == nil, nil
	})
	if gone != nil {
		return fmt.Errorf("%w: %w", target.ErrGone, gone)
	}
	return nil
}
