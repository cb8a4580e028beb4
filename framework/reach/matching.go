package reach

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Match is a webhook, or a policy with one of its bindings, whose rules and selectors match a request.
type Match struct {
	// Finding has the names. Its Effect is empty; or it is EffectUnknown if it is not known whether the
	// rules and selectors match, and EffectRefused if the API server refuses the request because of a selector.
	Finding
	// Criteria are the rules and selectors: of the webhook, or of the policy and, if it has matchResources,
	// of the binding.
	Criteria []*admissionregistrationv1.MatchResources
	// ParamKind is in the policy, and ParamRef in the binding. Both can be nil.
	ParamKind *admissionregistrationv1.ParamKind
	ParamRef  *admissionregistrationv1.ParamRef
}

// Matching returns the webhooks and policies of manifests (see New) whose rules and selectors match a
// request, and the webhooks and policies for which this is not known. It does not consider match conditions, params and
// expressions, and does not compile them, so it is cheaper than Explain. It returns an error for a manifest that cannot
// be read, and if a required field of the request is missing.
func Matching(ctx context.Context, manifests []map[string]any, request Request, cluster MatchCluster) ([]Match, error) {
	a, err := read(manifests)
	if err != nil {
		return nil, err
	}
	e, err := newExplanation(ctx, request, cluster)
	if err != nil {
		return nil, err
	}
	var found []Match
	for _, w := range a.webhooks {
		if f, _, _ := e.matchWebhook(w); f.Effect != EffectNone {
			found = append(found, Match{Finding: f, Criteria: []*admissionregistrationv1.MatchResources{w.resources()}})
		}
	}
	for _, p := range a.policies {
		of, _, _ := e.matchPolicy(p)
		if of.Effect == EffectNone || p.spec.MatchConstraints == nil {
			continue
		}
		for _, b := range a.bindingsOf(p) {
			f, matches := e.matchBinding(p, b)
			if matches {
				f.Effect, f.Text = of.Effect, of.Text
			}
			m := Match{f, []*admissionregistrationv1.MatchResources{p.spec.MatchConstraints}, p.spec.ParamKind, b.spec.ParamRef}
			if b.spec.MatchResources != nil {
				m.Criteria = append(m.Criteria, b.spec.MatchResources)
			}
			if f.Effect != EffectNone {
				found = append(found, m)
			}
		}
	}
	return found, nil
}
