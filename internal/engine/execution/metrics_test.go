package execution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// metered is a Target with metrics.
type metered struct {
	targettest.Target
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
		"no metrics":  {targettest.Target{}, []any{}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Case{target: one.target, patience: 10 * time.Millisecond, shared: newShared()}
			f := c.metrics(t.Context(), scenario.Metrics{Name: "m", Labels: of, Samples: one.want})
			if got := f != nil && len(f.Mismatches) > 0; got != one.mismatch {
				t.Errorf("mismatch: got %t (%v); want %t", got, f, one.mismatch)
			}
			if got := f != nil && f.Err != nil; got != one.isError {
				t.Errorf("error: got %t (%v); want %t", got, f, one.isError)
			}
		})
	}
}

// An expectation that holds is a mistake if the API server has neither the metric nor the label.
func TestUnknownMetrics(t *testing.T) {
	t.Parallel()
	const known = "apiserver_admission_webhook_fail_open_count"
	samples := []framework.Sample{{Labels: map[string]string{"name": "a", "type": "admit"}, Value: 1}}
	for name, one := range map[string]struct {
		samples []framework.Sample
		of      scenario.Metrics
		says    string
	}{
		"known without samples": {nil, scenario.Metrics{Name: known, Samples: []any{}}, ""},
		"known labels":          {samples, scenario.Metrics{Name: "m", Labels: map[string]string{"name": "b"}, Samples: []any{}}, ""},
		"proved":                {samples, scenario.Metrics{Name: "m", Samples: []any{map[string]any{"value": int64(1)}}}, ""},
		"unknown":               {nil, scenario.Metrics{Name: known + "s", Samples: []any{}}, `did you mean "` + known + `"?`},
		"unknown selector":      {samples, scenario.Metrics{Name: "m", Labels: map[string]string{"nme": "a"}, Samples: []any{}}, `no label "nme"; expected one of name, type; did you mean "name"?`},
		"unknown label":         {samples, scenario.Metrics{Name: "m", Samples: []any{map[string]any{"labels": map[string]any{"tpe": nil}}}}, `no label "tpe"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Case{target: metered{samples: one.samples}, patience: 10 * time.Millisecond, shared: newShared()}
			f := c.metrics(t.Context(), one.of)
			switch {
			case f == nil && one.says != "":
				t.Errorf("held; want an error with %q", one.says)
			case f != nil && (one.says == "" || !expect.IsMistake(f.Err) || !strings.Contains(f.Err.Error(), one.says)):
				t.Errorf("got %v; want %q", f.Err, one.says)
			}
		})
	}
}

// The limit is for the metric to match: a read that takes longer is not interrupted.
func TestSlowMetrics(t *testing.T) {
	t.Parallel()
	slow := slowMetrics{targettest.Target{}, func(ctx context.Context, _ string) ([]framework.Sample, error) {
		if _, limited := ctx.Deadline(); limited {
			return nil, context.DeadlineExceeded
		}
		return []framework.Sample{{Value: 1}}, nil
	}}
	c := &Case{target: slow, patience: time.Millisecond, shared: newShared()}
	if f := c.metrics(t.Context(), scenario.Metrics{Name: "m", Samples: []any{map[string]any{"value": int64(1)}}}); f != nil {
		t.Errorf("got %v %v; want a read that is not interrupted", f.Err, f.Mismatches)
	}
}

// A read that began before the limit and took longer is not the last one. If the time of the step is over, it is
// not known whether the metric matches.
func TestLastReadOfMetrics(t *testing.T) {
	t.Parallel()
	reads := 0
	slow := slowMetrics{targettest.Target{}, func(ctx context.Context, _ string) ([]framework.Sample, error) {
		if reads++; reads == 1 {
			late, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			<-late.Done()
			return []framework.Sample{{Value: 0}}, nil
		}
		return []framework.Sample{{Value: 1}}, nil
	}}
	c := &Case{target: slow, patience: 10 * time.Millisecond, shared: newShared()}
	step := scenario.Metrics{Name: "m", Samples: []any{map[string]any{"value": int64(1)}}}
	if f := c.metrics(t.Context(), step); f != nil {
		t.Errorf("got %v %v; want a second read", f.Err, f.Mismatches)
	}
	reads = 0
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c.target = slowMetrics{targettest.Target{}, func(ctx context.Context, _ string) ([]framework.Sample, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if f := c.metrics(short, step); f == nil || c.Outcome(f).Verdict != framework.Inconclusive {
		t.Errorf("got %v; want it to be inconclusive", f)
	}
}

// slowMetrics is a Target with metrics that take longer than any limit.
type slowMetrics struct {
	targettest.Target
	read func(context.Context, string) ([]framework.Sample, error)
}

func (s slowMetrics) Optional() target.Optional { return target.Optional{Metrics: s.read} }
