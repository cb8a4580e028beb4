package expect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Step is a step that failed.
type Step struct {
	// Number is the number of the step in its scenario, and Line the line in its file, from 1.
	Number, Line int
	// Action describes the step: "create ConfigMap subject".
	Action string
	// Request is the request of the step, or nil if it sent none.
	Request *framework.Request
	// Result is the result of the request.
	Result framework.Result
	// Mismatches are why the step failed, if it could be carried out.
	Mismatches []Mismatch
	// Expect is what the Mismatches are about, or nil if they are not about the Result.
	Expect *scenario.Expectation
}

// Options are what a step is shown with. Explain is required.
type Options struct {
	// ID is the ID of the scenario.
	ID string
	// NotSeen are the webhooks under test whose calls are not seen.
	NotSeen []report.NotSeen
	// Audit returns the audit event of a response, as in target.Optional. Nil means that there
	// are no audit events.
	Audit func(ctx context.Context, auditID string) (*framework.Audit, error)
	// Explain returns what each webhook, policy and binding of the scenario does about a request.
	Explain func(ctx context.Context, request framework.Request, result framework.Result) ([]reach.Finding, error)
}

// Of returns the evidence of a step. If the target can read the audit log, its annotations are
// included: they show calls that did not reach a Hook.
func Of(s Step, options Options) *report.Evidence {
	evidence := &report.Evidence{Step: s.Number, Line: s.Line, Action: s.Action, NotSeen: options.NotSeen}
	if s.Result.Status.Code != 0 {
		evidence.Response = strings.TrimSpace(fmt.Sprintf("%d %s %s", s.Result.Status.Code, s.Result.Status.Reason, s.Result.Status.Message))
	}
	var marked *framework.Call
	for _, m := range s.Mismatches {
		evidence.Mismatches = append(evidence.Mismatches, report.Mismatch{Path: m.Path, Expected: m.Expected, Actual: m.Actual})
		if marked == nil && m.Call != nil {
			marked = &s.Result.Trace[*m.Call]
		}
	}
	if !s.Result.Finished.IsZero() {
		evidence.DurationMillis = millis(s.Result.Finished.Sub(s.Result.Started))
	}
	event, trace := s.auditEvent(options), s.Result.Trace
	if event != nil && len(trace.Plugins()) == 0 {
		trace = trace.With(event.Plugins)
	}
	findings, err := s.findings(options)
	evidence.RefusedBy, evidence.Decisions = s.refusedBy(options), s.decisions(findings, err, options)
	for _, one := range s.culprits(trace) {
		if one.text != "" {
			evidence.Causes = append(evidence.Causes, one.text)
		}
		if marked == nil {
			marked = one.call
		}
	}
	evidence.Timeline = append(timeline(trace, s.Result.Started, marked), auditEntries(event)...)
	return evidence
}

// auditEvent returns the audit event of the request, or nil if there is none.
func (s Step) auditEvent(options Options) *framework.Audit {
	event := s.Result.Audit
	if read := options.Audit; event == nil && s.Result.AuditID != "" && read != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		event, _ = read(ctx, s.Result.AuditID)
	}
	return event
}

// findings returns what each webhook and policy of the scenario did about a request that was answered.
func (s Step) findings(options Options) ([]reach.Finding, error) {
	if s.Request == nil || len(s.Mismatches) == 0 || s.Result.Status.Code == 0 {
		return nil, nil
	}
	return options.Explain(context.Background(), *s.Request, s.Result)
}

// decisions returns the findings for a report. It leaves out webhooks whose calls were observed.
func (s Step) decisions(findings []reach.Finding, err error, options Options) []report.Decision {
	if err != nil {
		return []report.Decision{{Subject: "webhooks and policies", Effect: string(reach.EffectUnknown), Text: "the reason is unknown: " + report.FirstLine(redact.Text(err.Error()))}}
	}
	var all []report.Decision
	observed := s.Result.Trace.Webhooks()
	refuser := RefusedBy(s.Result.Status, options.ID)
	for _, finding := range findings {
		if finding.Effect == reach.EffectCalled && slices.Contains(observed, finding.Webhook) {
			continue // the timeline has it
		}
		if finding.Effect == reach.EffectNone && refuser.Policy != "" && finding.Name == refuser.Policy && (refuser.Binding == "" || finding.Binding == refuser.Binding) {
			continue // the response says otherwise, and it is right
		}
		all = append(all, report.Decision{
			Subject: finding.Subject(), Effect: string(finding.Effect), Reason: string(finding.Reason), Text: strings.ReplaceAll(redact.Text(finding.Text), "\n", " "),
		})
	}
	return all
}

// refusedBy returns who refused the request, for a report, or "".
func (s Step) refusedBy(options Options) string {
	if s.Result.Allowed() {
		return ""
	}
	return RefusedBy(s.Result.Status, options.ID).String()
}
