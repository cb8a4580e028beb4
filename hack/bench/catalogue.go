package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// Limits on two cores.
const (
	limitFloor         = 2.5  // times the floor
	limitMemory        = 300  // MiB of the command, without the API server
	integrationSeconds = 85.0 // seconds of Kubernetes' integration tests for the subset
)

// loading measures the command without an API server.
func (b *bench) loading(ctx context.Context) error {
	b.figures.heading("load and list")
	var loads, lists []float64
	for range 5 {
		began := time.Now()
		if _, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS}); err != nil {
			return err
		}
		loads = append(loads, time.Since(began).Seconds())
		m, err := b.execute(ctx, "list")
		if err != nil {
			return err
		}
		lists = append(lists, m.wall.Seconds())
	}
	b.figures.figure("load and check, in this process", median(loads), "s")
	b.figures.figure("admissiontest list, the whole process", median(lists), "s")
	return nil
}

// catalogue measures the whole catalogue.
func (b *bench) catalogue(ctx context.Context) error {
	b.figures.heading("catalogue")
	r, m, err := b.runCommand(ctx)
	if err != nil {
		return err
	}
	count := len(defaultProfile(b.all))
	b.figures.count("scenarios on the default server", count)
	b.figures.count("scenarios with a server profile", len(b.all)-count)
	b.figures.figure("API server ready", r.Timing.TargetReady, "s")
	b.figures.figure("catalogue on the default server", r.Timing.Catalogue, "s")
	b.figures.figure("a scenario on average", r.Timing.Catalogue/float64(max(count, 1)), "s")
	b.figures.figure("whole process, all servers", m.wall.Seconds(), "s")
	b.figures.atMost("peak memory of the command", m.peak, limitMemory, "MiB")
	b.figures.note("verdicts: %s", r.Summary)
	b.catalogueSeconds = r.Timing.Catalogue
	return nil
}

// runCommand runs scenarios with the command and reads its report.
func (b *bench) runCommand(ctx context.Context, names ...string) (report.Report, measured, error) {
	var r report.Report
	m, err := b.execute(ctx, append([]string{"run", "-o", "json"}, names...)...)
	if err != nil {
		return r, m, err
	}
	if err := json.Unmarshal(m.stdout, &r); err != nil {
		return r, m, fmt.Errorf("read report of %s: %w", b.command, err)
	}
	return r, m, nil
}

// defaultProfile returns the scenarios without a server profile.
func defaultProfile(all []scenario.Scenario) []scenario.Scenario {
	return slices.DeleteFunc(slices.Clone(all), func(s scenario.Scenario) bool { return s.Spec.Server != nil })
}

// median returns the median of values, or the higher one of the two in the middle. It returns
// 0 if there are no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
