package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// outcome returns the outcome of a scenario whose step failed.
func (f *failure) outcome(c *scenarioCase, step, line int) report.Outcome {
	verdict := framework.Fail
	switch {
	case errors.Is(f.err, framework.ErrForeign):
		verdict = framework.Unsupported
	case errors.Is(f.err, framework.ErrTimeout):
		verdict = framework.Inconclusive
	case f.err != nil:
		verdict = framework.Errored
	}
	return report.Outcome{
		Verdict:  verdict,
		Reason:   fmt.Sprintf("step %d (line %d): %s", step, line, f),
		Evidence: f.evidence(c, step, line),
	}
}

// evidence collects what was observed. If the target can read the audit log, its
// annotations are included: they show calls that did not reach a Hook.
func (f *failure) evidence(c *scenarioCase, step, line int) *report.Evidence {
	evidence := &report.Evidence{Step: step, Line: line, Action: f.action}
	if f.result.Status.Code != 0 {
		evidence.Response = strings.TrimSpace(fmt.Sprintf("%d %s %s", f.result.Status.Code, f.result.Status.Reason, f.result.Status.Message))
	}
	divergent := -1
	for _, m := range f.mismatches {
		evidence.Mismatches = append(evidence.Mismatches, report.Mismatch{Path: m.Path, Expected: m.Expected, Actual: m.Actual})
		if divergent < 0 && m.Call != nil {
			divergent = *m.Call
		}
	}
	rounds := map[string]int{}
	for i, call := range f.result.Trace {
		key := string(call.Phase) + " " + call.Webhook
		entry := report.TimelineEntry{
			OffsetMillis: float64(call.Started.Sub(f.result.Started).Microseconds()) / 1000,
			Phase:        string(call.Phase), Round: rounds[key], Webhook: call.Webhook,
			Summary: summary(call), Observed: call.Observed, Divergent: i == divergent,
		}
		rounds[key]++
		evidence.Timeline = append(evidence.Timeline, entry)
	}
	evidence.Timeline = append(evidence.Timeline, f.auditEntries(c)...)
	return evidence
}

// summary describes a call: "CREATE ns/name: allowed after 1.2ms".
func summary(call framework.Call) string {
	request := call.Request()
	text := call.Answer
	if operation, ok := request["operation"].(string); ok {
		text = fmt.Sprintf("%s %v/%v: %s", operation, request["namespace"], request["name"], text)
	}
	if !call.Finished.IsZero() {
		text += fmt.Sprintf(" after %s", call.Finished.Sub(call.Started).Round(100*time.Microsecond))
	}
	return text
}

// auditEntries returns the audit annotations of admission.
func (f *failure) auditEntries(c *scenarioCase) []report.TimelineEntry {
	event := f.result.Audit
	if read := c.target.Optional().Audit; event == nil && f.result.AuditID != "" && read != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		event, _ = read(ctx, f.result.AuditID)
	}
	if event == nil {
		return nil
	}
	var entries []report.TimelineEntry
	for _, key := range slices.Sorted(maps.Keys(event.Annotations)) {
		if strings.Contains(key, "webhook.admission.k8s.io/") || strings.Contains(key, "policy.admission.k8s.io/") {
			entries = append(entries, report.TimelineEntry{Summary: key + " = " + event.Annotations[key], Phase: "audit"})
		}
	}
	return entries
}
