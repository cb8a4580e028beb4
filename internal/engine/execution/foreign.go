package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/placeholder"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
	"github.com/admissiontest/admissiontest/internal/judge"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// ForeignError is why a response says nothing about the requirement of a scenario: a webhook or policy that
// the run did not install refused or changed the request. Its text does not depend on the scenario, so that
// a report shows it once.
type ForeignError struct{ text string }

// Error returns the text, which names the webhook or policy.
func (e *ForeignError) Error() string { return e.text }

// RefusedByForeign returns a ForeignError if an error is a refusal by a webhook or policy that the run did not
// install, or nil.
func (c *Case) RefusedByForeign(ctx context.Context, err error) *ForeignError {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return nil
	}
	return c.foreignRefusal(ctx, refusal.Status())
}

// foreignRefusal returns a ForeignError if the response names a webhook or policy that the run did not install. On
// an API server without other clients, a name that no webhook or policy has is a failure of the server.
func (c *Case) foreignRefusal(ctx context.Context, status metav1.Status) *ForeignError {
	by := judge.RefusedBy(status, "")
	name := by.Webhook + by.Policy
	if name == "" || c.installs(name) {
		return nil
	}
	optional := c.target.Optional()
	if optional.Confined == nil {
		if optional.Foreign == nil {
			return nil
		}
		if names, err := optional.Foreign(ctx); err != nil || !slices.Contains(names, name) {
			return nil
		}
	}
	what := fmt.Sprintf("policy %q", name)
	if by.Webhook != "" {
		what = fmt.Sprintf("webhook %q", name)
	}
	did := "refused a request"
	if by.Failed {
		did = "failed and so refused a request"
	}
	return &ForeignError{fmt.Sprintf("%s is not of this run and %s", what, did)}
}

// foreign returns a ForeignError if a webhook or policy that the run did not install refused the request of a
// response, or may have made the difference between the response and what is expected. Otherwise it
// returns nil.
func (c *Case) foreign(ctx context.Context, request framework.Request, result framework.Result, mismatches []judge.Mismatch) *ForeignError {
	if result.Status.Code == 0 {
		return nil
	}
	if !result.Allowed() {
		return c.foreignRefusal(ctx, result.Status)
	}
	changed := slices.ContainsFunc(mismatches, func(m judge.Mismatch) bool {
		return strings.HasPrefix(m.Path, "object") || strings.HasPrefix(m.Path, "calls") || strings.HasPrefix(m.Path, "audit")
	})
	do := c.target.Optional().Explain
	if !changed || do == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, explainLimit)
	defer cancel()
	findings, err := do(ctx, "", request, result)
	if err != nil {
		return nil
	}
	at := slices.IndexFunc(findings, func(f reach.Finding) bool {
		changes := f.Kind == "MutatingWebhookConfiguration" && f.Effect == reach.EffectCalled || f.Effect == reach.EffectMutates
		return changes && !c.installs(f.Name) && !c.installs(f.Webhook)
	})
	if at < 0 {
		return nil
	}
	return &ForeignError{findings[at].Subject() + " is not of this run and can have changed an object of a scenario"}
}

// installs reports whether a webhook or policy can be one of the scenario: its name has the ID of the
// scenario, or is in the manifests of its steps or of the run.
func (c *Case) installs(name string) bool {
	if name == "" || runid.Has(name, c.ID) {
		return name != ""
	}
	all := slices.Concat(c.Given, c.installed)
	_ = requests.EachStep(c.Scenario.Spec, func(_ string, raw scenario.Step) error { // it returns no error
		step, err := placeholder.Replace(raw, c.lookup)
		if err != nil {
			step = raw
		}
		all = append(slices.Concat(all, step.Install), step.Create, step.Update, step.Apply)
		return nil
	})
	return slices.ContainsFunc(all, func(manifest map[string]any) bool { return decides(manifest, name) })
}

// decides reports whether a manifest has a webhook of that name, or its object has that name.
func decides(manifest map[string]any, name string) bool {
	webhooks, _ := manifest["webhooks"].([]any)
	return (&unstructured.Unstructured{Object: manifest}).GetName() == name || slices.ContainsFunc(webhooks, func(webhook any) bool {
		fields, _ := webhook.(map[string]any)
		return fields["name"] == name
	})
}
