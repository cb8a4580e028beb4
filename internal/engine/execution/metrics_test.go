package execution

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/target"
)

// metered is a Target with metrics.
type metered struct {
	fakeTarget
	samples []framework.Sample
	err     error
}

func (m metered) Optional() target.Optional {
	return target.Optional{Metrics: func(context.Context, string) ([]framework.Sample, error) { return m.samples, m.err }}
}

// A metric that does not match in time is a mismatch, and one that cannot be read an error.
func TestMetrics(t *testing.T) {
	t.Parallel()
	samples := []framework.Sample{
		{Labels: map[string]string{"name": "b", "type": "x"}, Value: 2},
		{Labels: map[string]string{"name": "a", "type": "x"}, Value: 1},
		{Labels: map[string]string{"name": "c", "type": "y"}, Value: 3},
	}
	sample := func(name string, value float64) any {
		return map[string]any{"labels": map[string]any{"name": name}, "value": value}
	}
	of := map[string]string{"type": "x"}
	for name, one := range map[string]struct {
		target   target.Target
		want     any
		mismatch bool
		isError  bool
	}{
		"matches": {metered{samples: samples}, []any{sample("a", 1), sample("b", 2)}, false, false},
		"buckets": {metered{samples: []framework.Sample{{Labels: map[string]string{"type": "x"}, Value: 1, Buckets: []float64{0.5, 1}}}},
			[]any{map[string]any{"buckets": []any{0.5, 1.0}}}, false, false},
		"other buckets": {metered{samples: []framework.Sample{{Labels: map[string]string{"type": "x"}, Value: 1, Buckets: []float64{0.5}}}},
			[]any{map[string]any{"buckets": []any{0.5, 1.0}}}, true, false},
		"other value": {metered{samples: samples}, []any{sample("a", 1), sample("b", 7)}, true, false},
		"one too few": {metered{samples: samples}, []any{sample("a", 1)}, true, false},
		"unreadable":  {metered{err: errors.New("forbidden")}, []any{}, false, true},
		"no metrics":  {fakeTarget{}, []any{}, false, true},
	} {
		c := &Case{target: one.target, patience: 10 * time.Millisecond, shared: newShared(&redact.Set{})}
		f := c.metrics(t.Context(), scenario.Metrics{Name: "m", Labels: of, Samples: one.want})
		if got := f != nil && len(f.mismatches) > 0; got != one.mismatch {
			t.Errorf("%s: mismatch: got %t (%v); want %t", name, got, f, one.mismatch)
		}
		if got := f != nil && f.Err != nil; got != one.isError {
			t.Errorf("%s: error: got %t (%v); want %t", name, got, f, one.isError)
		}
	}
}
