package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// The limit for metrics to match: an API server writes those of a request until shortly
// after its response. metricsPause is the time between two reads, which are large.
const (
	metricsLimit = 5 * time.Second
	metricsPause = 200 * time.Millisecond
)

// metrics reads a metric until its samples match.
func (c *Case) metrics(ctx context.Context, m scenario.Metrics) *Failure {
	action := "metrics " + m.Name
	read := c.target.Optional().Metrics
	if read == nil {
		return &Failure{action: action, Err: errors.New("this target does not provide the metrics of the API server")}
	}
	var mismatches []judge.Mismatch
	err := wait.PollUntilContextTimeout(ctx, metricsPause, min(metricsLimit, c.patience), true, func(ctx context.Context) (bool, error) {
		samples, err := read(ctx, m.Name)
		if err != nil {
			return false, fmt.Errorf("read metric %s: %w", m.Name, err)
		}
		mismatches = judge.Match(m.Samples, asList(samples, m.Labels), "samples")
		return len(mismatches) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err) && len(mismatches) > 0:
		return &Failure{action: action, mismatches: mismatches}
	default:
		return &Failure{action: action, Err: err}
	}
}

// asList returns the samples with all of some labels as decoded JSON, sorted by their
// labels.
func asList(samples []framework.Sample, with map[string]string) []any {
	selected := slices.DeleteFunc(slices.Clone(samples), func(s framework.Sample) bool {
		for name, value := range with {
			if s.Labels[name] != value {
				return true
			}
		}
		return false
	})
	slices.SortFunc(selected, func(a, b framework.Sample) int { return strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
	out := make([]any, 0, len(selected))
	for _, s := range selected {
		labels := map[string]any{}
		for name, value := range s.Labels {
			labels[name] = value
		}
		sample := map[string]any{"labels": labels, "value": s.Value}
		if s.Buckets != nil {
			bounds := []any{}
			for _, bound := range s.Buckets {
				bounds = append(bounds, bound)
			}
			sample["buckets"] = bounds
		}
		out = append(out, sample)
	}
	return out
}
