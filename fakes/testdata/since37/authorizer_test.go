// Package since37 tests package fakes with what Kubernetes has since 0.37. Source that
// also compiles against 0.34 cannot name it, so this package is in testdata, where ./...
// does not find it: `make test-minors` names it.
package since37

import (
	"context"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// unconditional wants what Kubernetes has from 0.37 on.
type unconditional struct {
	*admission.Handler

	narrow authorizer.UnconditionalAuthorizer
	wide   authorizer.Authorizer
}

var _ initializer.WantsUnconditionalAuthorizer = &unconditional{}

func (u *unconditional) ValidateInitialization() error { return nil }

func (u *unconditional) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) {
	u.narrow = a
}

func (u *unconditional) SetAuthorizer(a authorizer.Authorizer) { u.wide = a }

func TestUnconditionalAuthorizer(t *testing.T) {
	a := fakes.Deny()
	i := fakes.NewInitializer(fakes.NewWorld(t), fakes.InjectAuthorizer(a)).Strict()
	plugin := &unconditional{}
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if plugin.narrow != authorizer.UnconditionalAuthorizer(a) || plugin.wide != authorizer.Authorizer(a) {
		t.Errorf("%+v", plugin)
	}
	if got := i.Log(); len(got) != 2 || got[0].Method != "SetUnconditionalAuthorizer" {
		t.Errorf("order: %v", got)
	}
	original := &recordingUnconditional{}
	initializer.New(nil, nil, nil, nil, nil, nil, nil, nil).Initialize(original)
	if len(original.calls) != 2 || original.calls[0] != "SetUnconditionalAuthorizer" {
		t.Errorf("order of Kubernetes: %v", original.calls)
	}
}

type recordingUnconditional struct {
	*admission.Handler

	calls []string
}

func (*recordingUnconditional) ValidateInitialization() error { return nil }

func (u *recordingUnconditional) SetUnconditionalAuthorizer(authorizer.UnconditionalAuthorizer) {
	u.calls = append(u.calls, "SetUnconditionalAuthorizer")
}

func (u *recordingUnconditional) SetAuthorizer(authorizer.Authorizer) {
	u.calls = append(u.calls, "SetAuthorizer")
}

// TestConditionsAware asks by the method that 0.37 has added.
func TestConditionsAware(t *testing.T) {
	a := fakes.Deny().Unless("*", "use", "*")
	var ask interface {
		ConditionsAwareAuthorize(context.Context, authorizer.Attributes) authorizer.ConditionsAwareDecision
	} = a
	for verb, want := range map[string]bool{"use": true, "get": false} {
		decision := ask.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{Verb: verb})
		if decision.IsAllow() != want {
			t.Errorf("%s: %v", verb, decision)
		}
	}
	if len(a.Requests()) != 2 {
		t.Errorf("recorded: %v", a.Requests())
	}
}

// What the rules allow is allowed if the object has the name "a".
func TestConditionally(t *testing.T) {
	named := authorizer.GenericCondition{ID: "named", EvaluateFunc: func(_ context.Context, data authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
		return authorizer.ConditionEvaluationResultBoolean(data.GetName() == "a")
	}}
	rules := fakes.Deny().Unless("*", "create", "pods")
	var a authorizer.Authorizer = fakes.Conditionally(rules, authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, []authorizer.Condition{named}),
		func(ctx context.Context, d authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
			return d.ConditionsMap().Evaluate(ctx, data, nil)
		})
	asked := authorizer.AttributesRecord{Verb: "create", Resource: "pods", ResourceRequest: true}
	if decision, reason, err := a.Authorize(t.Context(), asked); decision != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("without conditions: got %v, %q, %v", decision, reason, err)
	}
	decision := a.ConditionsAwareAuthorize(t.Context(), asked)
	for name, want := range map[string]authorizer.Decision{"a": authorizer.DecisionAllow, "b": authorizer.DecisionNoOpinion} {
		data := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", name, schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
		if got, reason, err := a.EvaluateConditions(t.Context(), decision, data); got != want || err != nil {
			t.Errorf("%s under %s: got %v, %q, %v; want %v", name, decision, got, reason, err, want)
		}
	}
	if asked.Verb = "delete"; !a.ConditionsAwareAuthorize(t.Context(), asked).IsNoOpinion() || len(rules.Requests()) != 3 {
		t.Errorf("a request without a rule: %v", rules.Requests())
	}
}
