package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
)

// metricsPath is the path of the metrics.
const metricsPath = "/metrics"

// Two metrics of an API server. featureMetric has one sample for each feature gate, and
// pluginMetric one for each admission plugin that was called, with operation and phase.
// See https://kubernetes.io/docs/reference/instrumentation/metrics/
const (
	featureMetric = "kubernetes_feature_enabled"
	pluginMetric  = "apiserver_admission_controller_admission_duration_seconds"
)

// FeatureGates returns the feature gates that the API server reports in its metrics,
// or nil if the metrics cannot be read.
func (c *Client) FeatureGates(ctx context.Context) map[string]bool {
	samples, err := c.Samples(ctx, featureMetric)
	if err != nil || len(samples) == 0 {
		return nil
	}
	gates := map[string]bool{}
	for _, gate := range samples {
		gates[gate.Labels["name"]] = gate.Value == 1
	}
	return gates
}

// CalledPlugins returns the names of the admission plugins that the API server called
// since its start, sorted.
func (c *Client) CalledPlugins(ctx context.Context) ([]string, error) {
	samples, err := c.Samples(ctx, pluginMetric)
	if err != nil {
		return nil, err
	}
	called := map[string]bool{}
	for _, plugin := range samples {
		called[plugin.Labels["name"]] = true
	}
	return slices.Sorted(maps.Keys(called)), nil
}

// Samples reads the samples of one metric. The error is a framework.ErrNotServed if the API server has no
// metrics.
func (c *Client) Samples(ctx context.Context, metric string) ([]framework.Sample, error) {
	text, err := c.rest.Get().AbsPath(metricsPath).SetHeader("Accept", "text/plain").Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return nil, &framework.NotServedError{Name: metricsPath}
	case err != nil:
		return nil, fmt.Errorf("read the metrics of the API server: %w", withNoResponse(err))
	}
	return parseSamples(text, metric)
}

// parseSamples gives the parser only the lines of one metric: an API server has some
// hundred thousand others.
func parseSamples(text []byte, metric string) ([]framework.Sample, error) {
	var lines []byte
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(metric)) {
			lines = append(lines, line...)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(lines))
	if err != nil {
		return nil, errors.Join(errors.New("parse the metrics of the API server"), err)
	}
	var out []framework.Sample
	for _, found := range families[metric].GetMetric() {
		labels := map[string]string{}
		for _, label := range found.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		value := found.GetGauge().GetValue() + found.GetCounter().GetValue() + found.GetUntyped().GetValue()
		sample := framework.Sample{Labels: labels, Value: value + float64(found.GetHistogram().GetSampleCount())}
		for _, bucket := range found.GetHistogram().GetBucket() {
			if bound := bucket.GetUpperBound(); !math.IsInf(bound, 1) {
				sample.Buckets = append(sample.Buckets, bound)
			}
		}
		out = append(out, sample)
	}
	return out, nil
}
