package expect

import (
	"context"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
)

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
