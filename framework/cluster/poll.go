package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is the pause between two questions of a wait.
const pollInterval = 5 * time.Millisecond

// poll asks until done, an error, or the limit.
func poll(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(context.Context) (bool, error) { return done() })
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("%w within %s", framework.ErrNotSettled, limit)
	}
	return err
}
