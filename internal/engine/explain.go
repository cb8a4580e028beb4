package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/report"
)

// explainLimit limits the time to find out what the configurations of a scenario do.
const explainLimit = 10 * time.Second

// explain returns what each webhook, policy and binding of the scenario does about a request, or nil
// if it cannot be found out.
func (c *scenarioCase) explain(ctx context.Context, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	do := c.target.Optional().Explain
	if do == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	return do(ctx, c.id, request, result)
}

// decisions returns what a report says of the webhooks and policies of the scenario, for a request
// that was answered.
func (f *failure) decisions(c *scenarioCase) []report.Decision {
	if f.request == nil || len(f.mismatches) == 0 || f.result.Status.Code == 0 {
		return nil
	}
	findings, err := c.explain(context.Background(), *f.request, f.result)
	if err != nil {
		return []report.Decision{{Subject: "webhooks and policies", Effect: string(reach.EffectUnknown), Text: "it is not known why: " + report.FirstLine(err.Error())}}
	}
	var all []report.Decision
	for _, finding := range findings {
		all = append(all, report.Decision{
			Subject: finding.Subject(), Effect: string(finding.Effect), Reason: string(finding.Reason), Text: strings.ReplaceAll(finding.Text, "\n", " "),
		})
	}
	return all
}

// refusedBy returns who refused the request, for a report, or "".
func (f *failure) refusedBy(c *scenarioCase) string {
	if f.result.Allowed() {
		return ""
	}
	if refuser := judge.RefusedBy(f.result.Status, c.id+"-"); refuser != (judge.Refuser{}) {
		return refuser.String()
	}
	return ""
}

// judgeRefuser compares who refused a request with who is expected to. NotSaid is set if the API
// server does not say it, and the expected webhook or policy can have refused the request.
func (c *scenarioCase) judgeRefuser(ctx context.Context, expect *scenario.Expectation, request framework.Request, result framework.Result) (wrong []judge.Mismatch, notSaid string) {
	if expect == nil || expect.RefusedBy == nil || result.Status.Code == 0 || result.Allowed() {
		return nil, "" // not refused: judge.Judge says so
	}
	want := *expect.RefusedBy
	got := judge.RefusedBy(result.Status, c.id+"-")
	if got != (judge.Refuser{}) {
		return judge.Refused(want, got), ""
	}
	wrong = judge.Refused(want, judge.Refuser{})
	for i := range wrong {
		wrong[i].Actual = fmt.Sprintf("the response names no webhook and no policy: %d %s", result.Status.Code, result.Status.Message)
	}
	if byOther(result.Status) {
		return wrong, ""
	}
	findings, err := c.explain(ctx, request, result)
	for _, finding := range findings {
		is := want.Webhook != "" && finding.Webhook == want.Webhook ||
			want.Policy != "" && finding.Name == want.Policy && (want.Binding == "" || finding.Binding == want.Binding)
		if is && finding.Effect != reach.EffectNone {
			findings, err = nil, nil
			break
		}
	}
	if err == nil && len(findings) > 0 {
		return wrong, "" // it does not decide about this request
	}
	return wrong, fmt.Sprintf("the API server does not say who refused the request: %d %s", result.Status.Code, result.Status.Message)
}

// byOther reports whether a refusal is certainly not one of a webhook or a policy: the authorizer, the
// validation of the object, or the storage refused it
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, k8s.io/apimachinery/pkg/api/errors).
func byOther(status metav1.Status) bool {
	switch status.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict:
		return true
	case http.StatusForbidden:
		return strings.Contains(status.Message, "User \"") && strings.Contains(status.Message, "\" cannot ")
	case http.StatusUnprocessableEntity:
		return strings.Contains(status.Message, "\" is invalid: ")
	default:
		return false
	}
}
