package execution

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
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// explainLimit limits the time to find out what the configurations of a scenario do.
const explainLimit = 10 * time.Second

// explain returns what each webhook, policy and binding of the scenario does about a request, or nil
// if it cannot be found out.
func (c *Case) explain(ctx context.Context, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	return c.explainOf(ctx, c.ID, request, result)
}

// explainOf is explain for the webhooks and policies of an ID: see target.Optional.
func (c *Case) explainOf(ctx context.Context, id string, request framework.Request, result framework.Result) ([]reach.Finding, error) {
	do := c.target.Optional().Explain
	if do == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	return do(ctx, id, request, result)
}

// judgeRefuser adds the mismatches between the webhook or policy that refused a request and the expected
// one. NotSaid is set if there are no other mismatches, the API server does not say who refused, and the
// expected webhook or policy may have refused.
func (c *Case) judgeRefuser(want *scenario.Expectation, result framework.Result, others []expect.Mismatch) (all []expect.Mismatch, notSaid string) {
	if want == nil || result.Status.Code == 0 || result.Allowed() {
		return others, "" // a request that was not refused is among the others
	}
	got := expect.RefusedBy(result.Status, c.ID)
	all = append(others, expect.Refused(want, got, result.Status)...)
	if want.RefusedBy != nil && got == (expect.Refuser{}) && len(others) == 0 && !byOther(result.Status) {
		notSaid = fmt.Sprintf("the API server does not say who refused the request: %d %s", result.Status.Code, result.Status.Message)
	}
	return all, notSaid
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
