package execution

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// losingSandbox loses the first responses.
type losingSandbox struct {
	fakeSandbox
	losses int
}

func (s *losingSandbox) Do(ctx context.Context, r framework.Request) (framework.Result, error) {
	if s.losses > 0 {
		s.losses--
		return framework.Result{}, framework.ErrNoResponse
	}
	return s.fakeSandbox.Do(ctx, r)
}

// A request whose response was lost is only repeated if the step must hold eventually,
// and only for as long as the patience lasts.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	reference := scenario.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	for name, test := range map[string]struct {
		eventually bool
		losses     int
		patience   time.Duration
		lost       bool
	}{
		"eventually": {eventually: true, losses: 2, patience: time.Minute},
		"never":      {eventually: true, losses: 1 << 30, patience: 30 * time.Millisecond, lost: true},
		"at once":    {losses: 1, patience: time.Minute, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := caseOn(&losingSandbox{losses: test.losses})
			c.patience = test.patience
			failure := c.step(t.Context(), scenario.Step{Get: &reference, Eventually: test.eventually})
			switch {
			case !test.lost && failure != nil:
				t.Error(failure)
			case test.lost && (failure == nil || !errors.Is(failure.Err, framework.ErrNoResponse)):
				t.Errorf("got %v, want an ErrNoResponse", failure)
			}
		})
	}
}
