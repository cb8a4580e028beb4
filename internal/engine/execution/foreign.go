package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// ForeignError is why a response says nothing about the requirement of a scenario: a webhook or policy that
// the run did not install refused the request, or can have changed it.
type ForeignError struct{ text string }

// Error names the webhook or policy. The text does not depend on the scenario, so that a report shows it
// once.
func (e *ForeignError) Error() string { return e.text }

// Outcome returns the outcome of a scenario with this error.
func (e *ForeignError) Outcome() report.Outcome {
	return report.Outcome{Verdict: framework.Inconclusive, Reason: e.text}
}

// OfForeign returns a ForeignError if an error is a refusal by a webhook or policy that the run did not
// install, and otherwise the error. Own are manifests of the run. The target is nil if it could not be
// started because of the error.
func OfForeign(ctx context.Context, on target.Target, err error, own []map[string]any) error {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return err
	}
	if foreign := refusedByForeign(ctx, on, refusal.Status(), own); foreign != nil {
		return foreign
	}
	return err
}

// refusedByForeign returns a ForeignError if a response is a refusal by a webhook or policy that the run did
// not install. On an API server without other clients it is one only if the server has a webhook or policy
// of that name; otherwise the API server names a wrong one.
func refusedByForeign(ctx context.Context, on target.Target, status metav1.Status, own []map[string]any) *ForeignError {
	by := expect.RefusedBy(status, "")
	name, shared := by.Webhook+by.Policy, on == nil || on.Optional().Confined != nil
	switch {
	case name == "", on != nil && runid.Has(name, runid.Prefix(on.RunID())):
		return nil
	case (by.Webhook != "" || !shared) && slices.ContainsFunc(own, decides(name)):
		return nil // only the names of webhooks, and all names without isolation, are as the manifests say
	case !shared && !slices.ContainsFunc(foreignManifests(ctx, on), decides(name)):
		return nil
	}
	return &ForeignError{fmt.Sprintf("refused by %s, which this run did not install", expect.Refuser{Webhook: by.Webhook, Policy: by.Policy}.Name())}
}

// foreignManifests returns what no run installed on an API server, or nil if that is not known.
func foreignManifests(ctx context.Context, on target.Target) []map[string]any {
	list := on.Optional().Foreign
	if list == nil {
		return nil
	}
	found, err := list(ctx)
	if err != nil {
		return nil
	}
	return found
}

// foreign returns a ForeignError if an error of the case is a refusal by a webhook or policy that the run did
// not install, and otherwise the error.
func (c *Case) foreign(ctx context.Context, err error) error {
	return OfForeign(ctx, c.target, err, c.Own())
}

// foreignRefusal returns a ForeignError if a webhook or policy that the run did not install refused the
// request of a step, or may have: a webhook of the same name as one of the run's is called too, and an error in a match
// condition names no webhook. An expectation of a refusal by that webhook or policy is about it.
func (c *Case) foreignRefusal(ctx context.Context, want *scenario.Expectation, request framework.Request, result framework.Result) error {
	by := expect.RefusedBy(result.Status, "")
	if result.Status.Code == 0 || result.Allowed() || by == (expect.Refuser{}) {
		return nil
	}
	name := by.Webhook + by.Policy
	if foreign := refusedByForeign(ctx, c.target, result.Status, c.Own()); foreign != nil {
		named := want != nil && want.RefusedBy != nil && (want.RefusedBy.Webhook == name || slices.Contains(want.RefusedBy.Policy, name))
		if named && !slices.ContainsFunc(c.Own(), decides(name)) {
			return nil
		}
		return foreign
	}
	if by.Policy != "" || by.Webhook != "" && c.target.Optional().Confined == nil {
		return nil
	}
	return c.foreignEffect(ctx, request, result, func(f reach.Finding) bool { return name == "" || f.Webhook == name })
}

// foreignChange returns a ForeignError if a webhook or policy that the run did not install may have changed
// an object of the scenario, or may have made a part of the response that differs from what is expected. An API server
// answers 404 if it does not find the namespace of a request for a namespaceSelector, and does not say for which.
func (c *Case) foreignChange(ctx context.Context, request framework.Request, result framework.Result, mismatches []expect.Mismatch) error {
	if len(foreignManifests(ctx, c.target)) == 0 {
		return nil
	}
	answers := slices.ContainsFunc(mismatches, func(m expect.Mismatch) bool {
		return strings.HasPrefix(m.Path, "warnings") || strings.HasPrefix(m.Path, "audit")
	})
	details := result.Status.Details
	noNamespace := result.Status.Code == http.StatusNotFound && request.Namespace != "" && details != nil && details.Kind == "namespaces"
	err := c.foreignEffect(ctx, request, result, func(f reach.Finding) bool {
		return answers || changes(f) || noNamespace && f.Effect == reach.EffectUnknown
	})
	for _, m := range c.manifests() {
		if err == nil {
			err = c.foreignChangeOf(ctx, m.object)
		}
	}
	return err
}

// foreignChangeOf returns a ForeignError if a webhook or policy that the run did not install may change an object
// when it is created.
func (c *Case) foreignChangeOf(ctx context.Context, manifest map[string]any) error {
	request, _, err := c.composer().Compose(scenario.Step{Create: manifest})
	if err != nil || object.IsAdmission(manifest) {
		return nil //nolint:nilerr // the step itself reports it
	}
	return c.foreignEffect(ctx, request, framework.Result{}, changes)
}

// changes reports whether a finding is of a webhook or policy that can change objects.
func changes(f reach.Finding) bool { return strings.HasPrefix(f.Kind, "Mutating") }

// foreignEffect returns a ForeignError if one of the webhooks and policies that the run did not install is
// effective for a request, among those for which a function returns true.
func (c *Case) foreignEffect(ctx context.Context, request framework.Request, result framework.Result, among func(reach.Finding) bool) error {
	shared, own := c.target.Optional().Confined != nil, c.Own()
	findings, err := c.explainOf(ctx, "", request, result)
	if err != nil {
		return nil //nolint:nilerr // then it is not known
	}
	at := slices.IndexFunc(findings, func(f reach.Finding) bool {
		return f.Effect != reach.EffectNone && among(f) && (shared || !slices.ContainsFunc(own, decides(cmp.Or(f.Webhook, f.Name))))
	})
	if at < 0 {
		return nil
	}
	return &ForeignError{"not as expected, and a cause can be " + findings[at].Subject() + ", which this run did not install"}
}

// decides reports whether a manifest has a webhook of that name, or is of a policy of that name.
func decides(name string) func(manifest map[string]any) bool {
	return func(manifest map[string]any) bool {
		if object.IsPolicy(manifest) {
			return (&unstructured.Unstructured{Object: manifest}).GetName() == name
		}
		return slices.ContainsFunc(webhooksOf(manifest), func(webhook map[string]any) bool { return webhook["name"] == name })
	}
}

// webhooksOf returns the webhooks of a configuration.
func webhooksOf(manifest map[string]any) (all []map[string]any) {
	items, _ := manifest["webhooks"].([]any)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
