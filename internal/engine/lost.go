package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/engine/infrastructure"
	"github.com/admissiontest/admissiontest/internal/target"
)

// The limits of gone: how long an API server may take to restart, which is also how long an administrative
// request is repeated, and the time between two questions.
const (
	restartLimit = 17 * time.Second
	restartPause = 250 * time.Millisecond
)

// lost returns a target.ErrGone if an error says nothing about admission because the API server is gone.
func (r *groupRun) lost(ctx context.Context, err error) error {
	if errors.Is(err, target.ErrGone) {
		return err
	}
	if infrastructure.OfError(err) == "" {
		return nil
	}
	return r.gone(ctx)
}

// gone returns a target.ErrGone if the API server does not respond, or cannot reach its storage, for as
// long as a restart takes.
func (r *groupRun) gone(ctx context.Context) error {
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
