package fakes

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Conditional is an Authorizer that allows under conditions, since Kubernetes 1.37. Make it with Conditionally.
type Conditional[Decision interface{ IsAllow() bool }, Data any] struct {
	*Authorizer

	decision Decision
	evaluate func(context.Context, Decision, Data) (authorizer.Decision, string, error)
}

// Conditionally returns an Authorizer that allows what the rules allow only under the conditions of a decision. Decision is
// authorizer.ConditionsAwareDecision and Data is authorizer.ConditionsData, which minors before 1.37 do not have: with these, the
// Conditional is an authorizer.Authorizer. Give the union of two Authorizers, if some requests are allowed without conditions.
// EvaluateConditions returns what evaluate does, for conditions that can evaluate themselves:
//
//	func(ctx context.Context, d authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
//		return d.ConditionsMap().Evaluate(ctx, data, nil)
//	}
func Conditionally[Decision interface{ IsAllow() bool }, Data any](rules *Authorizer, decision Decision, evaluate func(context.Context, Decision, Data) (authorizer.Decision, string, error)) *Conditional[Decision, Data] {
	return &Conditional[Decision, Data]{rules, decision, evaluate}
}

// Authorize implements authorizer.Authorizer. It cannot return conditions, so it has no opinion about what they are for.
func (c *Conditional[Decision, Data]) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := c.Authorizer.Authorize(ctx, asked)
	if decision == authorizer.DecisionAllow {
		return authorizer.DecisionNoOpinion, reason + ", but only under conditions", err
	}
	return decision, reason, err
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (c *Conditional[Decision, Data]) ConditionsAwareAuthorize(ctx context.Context, asked authorizer.Attributes) Decision {
	var decided Decision // denies
	if rules, ok := any(c.Authorizer).(interface {
		ConditionsAwareAuthorize(ctx context.Context, asked authorizer.Attributes) Decision
	}); ok {
		decided = rules.ConditionsAwareAuthorize(ctx, asked)
	}
	if decided.IsAllow() {
		return c.decision
	}
	return decided
}

// EvaluateConditions implements authorizer.Authorizer.
func (c *Conditional[Decision, Data]) EvaluateConditions(ctx context.Context, decision Decision, data Data) (authorizer.Decision, string, error) {
	return c.evaluate(ctx, decision, data)
}
