package execution

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func (c *Case) judgeRefuser(ctx context.Context, want *scenario.Expectation, request framework.Request, result framework.Result, others []expect.Mismatch) (all []expect.Mismatch, notSaid string) {
	if want == nil || result.Status.Code == 0 || result.Allowed() {
		return others, "" // a request that was not refused is among the others
	}
	got := expect.RefusedBy(result.Status, c.ID)
	got.Failed = got.Failed && !c.declares(got)
	all = append(others, expect.Refused(want, got, result.Status)...)
	if want.RefusedBy != nil && got == (expect.Refuser{}) && len(others) == 0 && !byOther(result.Status) && c.canDecide(ctx, *want.RefusedBy, request, result) {
		notSaid = fmt.Sprintf("the API server does not say who refused the request: %d %s", result.Status.Code, result.Status.Message)
	}
	return all, notSaid
}

// declares reports whether the message of a refusal is that of a validation in a manifest of the scenario,
// even if it reads like an error.
func (c *Case) declares(by expect.Refuser) bool {
	return by.Message != "" && slices.ContainsFunc(c.Own(), func(manifest map[string]any) bool {
		policy := unstructured.Unstructured{Object: manifest}
		validations, _, _ := unstructured.NestedSlice(manifest, "spec", "validations")
		return policy.GetName() == by.Policy && slices.ContainsFunc(validations, func(validation any) bool {
			fields, _ := validation.(map[string]any)
			message, _ := fields["message"].(string)
			return strings.TrimSpace(message) == by.Message
		})
	})
}

// canDecide reports whether a webhook or policy can have decided about a request. It can if nothing is
// known of it.
func (c *Case) canDecide(ctx context.Context, who scenario.RefusedBy, request framework.Request, result framework.Result) bool {
	findings, err := c.explain(ctx, request, result)
	return err != nil || len(findings) == 0 || slices.ContainsFunc(findings, func(f reach.Finding) bool {
		is := who.Webhook != "" && f.Webhook == who.Webhook || slices.Contains(who.Policy, f.Name) && (who.Binding == "" || f.Binding == who.Binding)
		return is && f.Effect != reach.EffectNone
	})
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
