package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/suggest"

	"github.com/admissiontest/admissiontest/internal/redact"
)

// The limit for metrics to match: an API server writes the metrics of a request until shortly
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
		return failed(action, errors.New("this target does not provide the metrics of the API server"))
	}
	var mismatches []expect.Mismatch
	var all []framework.Sample
	matches := func(context.Context) (bool, error) {
		samples, err := read(ctx, m.Name) // a read that takes longer than the limit is not interrupted
		if err != nil {
			return false, fmt.Errorf("read metric %s: %w", m.Name, err)
		}
		all = samples
		mismatches = redact.Matcher().Match(m.Samples, asList(samples, m.Labels), "samples")
		return len(mismatches) == 0, nil
	}
	err := wait.PollUntilContextTimeout(ctx, metricsPause, min(metricsLimit, c.patience), true, matches)
	if limitEnded(err) && ctx.Err() == nil { // the last read can have begun long before the limit
		if matched, failed := matches(ctx); matched || failed != nil {
			err = failed
		}
	}
	switch {
	case err == nil:
		return failed(action, c.unknownMetric(m, all))
	case limitEnded(err) && len(mismatches) > 0:
		return &Failure{Step: expect.Step{Action: action, Mismatches: mismatches}}
	default:
		return failed(action, err)
	}
}

// admissionMetrics are the metrics of admission in an API server. One without samples is not shown
// (k8s.io/apiserver/pkg/admission).
func admissionMetrics() []string {
	var names []string
	for _, name := range []string{
		"step_admission_duration_seconds", "step_admission_duration_seconds_summary", "controller_admission_duration_seconds",
		"webhook_admission_duration_seconds", "webhook_rejection_count", "webhook_fail_open_count", "webhook_request_total",
		"match_condition_evaluation_errors_total", "match_condition_exclusions_total", "match_condition_evaluation_seconds",
	} {
		names = append(names, "apiserver_admission_"+name)
	}
	for _, kind := range []string{"validating", "mutating"} {
		names = append(names, "apiserver_"+kind+"_admission_policy_check_total", "apiserver_"+kind+"_admission_policy_check_duration_seconds")
	}
	return names
}

// unknownMetric returns an explain.MistakeError for an expectation that held and says nothing, because the metric, or
// a label that it names, does not exist. All are all samples of the metric.
func (c *Case) unknownMetric(m scenario.Metrics, all []framework.Sample) error {
	at := c.path + ".metrics"
	if len(all) == 0 {
		if slices.Contains(admissionMetrics(), m.Name) {
			return nil
		}
		return asError([]*scenario.Error{c.Scenario.ErrorAt(at, "name", fmt.Sprintf("the API server has no samples of a metric %s; expected the name of one that it has", m.Name),
			strings.TrimPrefix(suggest.DidYouMean(m.Name, admissionMetrics()), "; "))})
	}
	var names []string
	for _, s := range all {
		names = slices.AppendSeq(names, maps.Keys(s.Labels))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var problems []*scenario.Error
	unknown := func(field, label string) {
		if !slices.Contains(names, label) {
			problems = append(problems, c.Scenario.ErrorAt(at, field, fmt.Sprintf("metric %s has no label %q; expected one of %s", m.Name, label, strings.Join(names, ", ")),
				strings.TrimPrefix(suggest.DidYouMean(label, names), "; ")))
		}
	}
	for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
		unknown(match.Key("labels", label), label)
	}
	for _, one := range match.Assumptions(m.Samples) {
		if len(one.Field) == 3 && one.Field[1] == "labels" {
			unknown("samples", fmt.Sprint(one.Field[2]))
		}
	}
	return asError(problems)
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
		labels := map[string]string{}
		maps.Copy(labels, s.Labels)
		sample := map[string]any{"labels": labels, "value": s.Value}
		if s.Buckets != nil {
			sample["buckets"] = s.Buckets
		}
		out = append(out, sample)
	}
	return out
}
