package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// cuttingTarget cuts off so many answers, and gives one after that.
type cuttingTarget struct {
	versioningTarget
	cuts int
}

func (t *cuttingTarget) Do(ctx context.Context, r framework.Request) (framework.Result, error) {
	if t.cuts > 0 {
		t.cuts--
		return framework.Result{}, framework.ErrLost
	}
	return t.versioningTarget.Do(ctx, r)
}

// A request whose answer was cut off is made again only where the step is to hold
// eventually, and no longer than the patience lasts.
func TestCutOffAnswer(t *testing.T) {
	t.Parallel()
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	for name, test := range map[string]struct {
		eventually bool
		cuts       int
		patience   time.Duration
		lost       bool
	}{
		"eventually": {eventually: true, cuts: 2, patience: time.Minute},
		"never":      {eventually: true, cuts: 1 << 30, patience: 30 * time.Millisecond, lost: true},
		"at once":    {cuts: 1, patience: time.Minute, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &scenarioCase{target: &cuttingTarget{cuts: test.cuts}, patience: test.patience, mu: &sync.Mutex{}}
			failure := c.step(t.Context(), scenario.Step{Get: &reference, Eventually: test.eventually})
			switch {
			case !test.lost && failure != nil:
				t.Error(failure)
			case test.lost && (failure == nil || !errors.Is(failure.err, framework.ErrLost)):
				t.Errorf("got %v, want an error that no answer came", failure)
			}
		})
	}
}
