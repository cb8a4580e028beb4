package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/scenarios"
)

// loading measures the command without an API server.
func (b *bench) loading(ctx context.Context) error {
	b.print("\nload and list")
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
	b.figure("load and check, in this process, at best", slices.Min(loads), "s")
	b.figure("admissiontest list, the whole process, at best", slices.Min(lists), "s")
	return nil
}

// catalogue measures the whole catalogue.
func (b *bench) catalogue(ctx context.Context) error {
	b.print("\ncatalogue")
	r, m, err := b.runCommand(ctx)
	if err != nil {
		return err
	}
	b.figure("API server ready", r.Timing.TargetReady, "s")
	b.figure("catalogue on the default server", r.Timing.Catalogue, "s")
	b.figure("whole process, all servers", m.wall.Seconds(), "s")
	b.figure("peak memory of the command", m.peak, "MiB")
	b.print("  verdicts: %s", r.Summary)
	return nil
}

// runCommand runs scenarios with the command and reads its report. It lists the scenarios that did not pass.
func (b *bench) runCommand(ctx context.Context) (report.Report, measured, error) {
	var r report.Report
	m, err := b.execute(ctx, "run", "-o", "json")
	if wrong := json.Unmarshal(m.stdout, &r); wrong != nil {
		return r, m, errors.Join(err, fmt.Errorf("read report of %s: %w", b.command, wrong))
	}
	failed := len(b.failed)
	for _, o := range r.Outcomes {
		if o.Verdict == framework.Fail || o.Verdict == framework.Errored || o.Verdict == framework.Inconclusive {
			b.print("  %s %s: %s", o.Verdict, o.Name, o.Reason)
			b.failed = append(b.failed, o.Name)
		}
	}
	if err != nil && len(b.failed) > failed {
		err = nil // these scenarios are the reason of the exit code
	}
	return r, m, err
}
