package execution

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// explainingTarget gives fixed findings. Its Sandbox answers with a status.
type explainingTarget struct {
	targettest.Target
	findings []reach.Finding
	err      error
}

func (t explainingTarget) Optional() target.Optional {
	return target.Optional{Explain: func(context.Context, string, framework.Request, framework.Result) ([]reach.Finding, error) {
		return t.findings, t.err
	}}
}

type statusSandbox struct {
	target.Sandbox
	status metav1.Status
}

func (s statusSandbox) Do(context.Context, framework.Request) (framework.Result, error) {
	return framework.Result{Status: s.status}, nil
}

// outcomeOf returns the outcome of a create, or a zero Outcome if the step held.
func outcomeOf(expect scenario.Expectation, status metav1.Status, findings []reach.Finding, err error) report.Outcome {
	sandbox := statusSandbox{status: status}
	c := caseOn(sandbox)
	c.ID, c.target = "at-1", explainingTarget{Target: targettest.Target{Sandbox: sandbox}, findings: findings, err: err}
	object := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}}).Object
	failure := c.step(context.Background(), scenario.Step{Create: object, Then: &expect})
	if failure == nil {
		return report.Outcome{}
	}
	return c.Outcome(failure)
}

// TestRefusedBy: a refusal by another one fails, and one that names no policy or webhook is inconclusive.
func TestRefusedBy(t *testing.T) {
	const byPolicy = `configmaps "c" is forbidden: ValidatingAdmissionPolicy 'at-1-p' with binding 'at-1-b' denied request: no owner`
	const byError = `configmaps "c" is forbidden: ValidatingAdmissionPolicy 'at-1-p' with binding 'at-1-b' denied request: expression 'object.data' resulted in error: no such key: data`
	finding := func(effect reach.Effect) []reach.Finding {
		return []reach.Finding{{Kind: "ValidatingAdmissionPolicy", Name: "p", Binding: "b", Effect: effect, Reason: reach.ReasonOperation, Text: "why"}}
	}
	p := scenario.Expectation{RefusedBy: &scenario.RefusedBy{Policy: []string{"p"}}}
	for name, test := range map[string]struct {
		expect   scenario.Expectation
		status   metav1.Status
		findings []reach.Finding
		err      error
		verdict  framework.Verdict
	}{
		"by an error of it":         {p, metav1.Status{Code: 422, Message: byError}, nil, nil, framework.Fail},
		"by an error, expected":     {scenario.Expectation{RefusedBy: &scenario.RefusedBy{Policy: []string{"p"}, Error: "no such key"}}, metav1.Status{Code: 422, Message: byError}, nil, nil, ""},
		"by a failed call":          {scenario.Expectation{RefusedBy: &scenario.RefusedBy{Webhook: "w"}}, metav1.Status{Code: 500, Message: `Internal error occurred: failed calling webhook "w": EOF`}, nil, nil, framework.Fail},
		"by it":                     {p, metav1.Status{Code: 422, Message: byPolicy}, nil, nil, ""},
		"not refused":               {p, metav1.Status{Code: 201}, finding(reach.EffectNone), nil, framework.Fail},
		"by a webhook":              {p, metav1.Status{Code: 403, Message: `admission webhook "w" denied the request: x`}, nil, nil, framework.Fail},
		"right code, wrong refuser": {scenario.Expectation{Code: []int{403}, RefusedBy: &scenario.RefusedBy{Webhook: "v"}}, metav1.Status{Code: 403, Message: `admission webhook "w" denied the request: x`}, nil, nil, framework.Fail},
		"by the authorizer":         {p, metav1.Status{Code: 403, Message: `configmaps is forbidden: User "ann" cannot create resource "configmaps"`}, finding(reach.EffectInvalid), nil, framework.Fail},
		"invalid object":            {p, metav1.Status{Code: 422, Message: `ConfigMap "c" is invalid: metadata.name: x`}, finding(reach.EffectInvalid), nil, framework.Fail},
		"none named":                {p, metav1.Status{Code: 403, Message: "no"}, finding(reach.EffectInvalid), nil, framework.Inconclusive},
		"none named, wrong code":    {scenario.Expectation{Code: []int{422}, RefusedBy: p.RefusedBy}, metav1.Status{Code: 403, Message: "no"}, finding(reach.EffectInvalid), nil, framework.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.expect, test.status, test.findings, test.err); got.Verdict != test.verdict {
				t.Errorf("got %q, want %q: %s", got.Verdict, test.verdict, got.Reason)
			}
		})
	}
}

// TestDecisions: a failure says what the policies do about the request, and who refused it.
func TestDecisions(t *testing.T) {
	findings := []reach.Finding{{Kind: "ValidatingAdmissionPolicy", Name: "p", Binding: "b", Effect: reach.EffectNone, Reason: reach.ReasonOperation, Text: "it does not apply:\nwhy"}}
	refused := false
	expect := scenario.Expectation{Allowed: &refused}
	outcome := outcomeOf(expect, metav1.Status{Code: 201}, findings, nil)
	if text := report.FailureText(outcome); !strings.Contains(text, `inferred     ValidatingAdmissionPolicy "p", binding "b": it does not apply: why`) {
		t.Errorf("got no reason in:\n%s", text)
	}
	outcome = outcomeOf(expect, metav1.Status{Code: 201}, nil, errors.New("lost"))
	if text := report.FailureText(outcome); !strings.Contains(text, "inferred     webhooks and policies: the reason is unknown: lost") {
		t.Errorf("got no error in:\n%s", text)
	}
	outcome = outcomeOf(scenario.Expectation{}, metav1.Status{Code: 403, Message: `admission webhook "w" denied the request: x`}, nil, nil)
	if text := report.FailureText(outcome); !strings.Contains(text, `refused by   webhook "w"`) {
		t.Errorf("got no refuser in:\n%s", text)
	}
}

// A refusal by the authorizer says nothing, because it can have read no roles yet. The cause has the user, the verb, the
// resource and what grants the right.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	const where = `User "jane" cannot patch resource "deployments/scale" in API group "apps" `
	for scope, roles := range map[string]string{`in the namespace "at-1"`: "a Role and a RoleBinding", "at the cluster scope": "a ClusterRole and a ClusterRoleBinding"} {
		t.Run(scope, func(t *testing.T) {
			c := caseOn(statusSandbox{status: metav1.Status{Code: 403, Message: `deployments.apps "a" is forbidden: ` + where + scope}})
			failure := c.step(t.Context(), createStep(nil))
			if got := failure.NothingAboutAdmission(); !strings.HasPrefix(got, "the authorizer refused the request: "+where+scope+"; grant it with "+roles) {
				t.Errorf("got %q", got)
			}
		})
	}
}
