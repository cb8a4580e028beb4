package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The pause between two questions of a wait: for what takes milliseconds, and
// for what takes up to a second.
const (
	soon  = 5 * time.Millisecond
	later = 25 * time.Millisecond
)

// poll asks until done, an error, or the limit.
func poll(ctx context.Context, interval, limit time.Duration, done func() (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, interval, limit, true, func(context.Context) (bool, error) { return done() })
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		return fmt.Errorf("%w within %s", framework.ErrNotSettled, limit)
	}
	return err
}
