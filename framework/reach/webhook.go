package reach

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// resourcesOf returns the rules and selectors of a webhook in the form of a policy's.
func resourcesOf(w admissionregistrationv1.MutatingWebhook) *admissionregistrationv1.MatchResources {
	m := &admissionregistrationv1.MatchResources{MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector}
	for _, rule := range w.Rules {
		m.ResourceRules = append(m.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	setMatchDefaults(m)
	return m
}

// attributes returns the attributes in the phase of webhooks or policies that mutate, or of the others.
func (e *explanation) attributes(mutates bool) admission.Attributes {
	if mutates {
		return e.mutating
	}
	return e.validating
}

// matchWebhook reports whether the rules and selectors of a webhook match. If they do not, the Finding
// says why; otherwise it only has the names.
func (e *explanation) matchWebhook(w *webhookOf) (Finding, matched, bool) {
	f := Finding{Kind: w.kind, Name: w.configuration, Webhook: w.Name}
	attributes := e.attributes(w.mutates())
	if rules.IsExemptAdmissionConfigurationResource(attributes) {
		return f.none(ReasonExempt, "it is not called for admission configurations: Kubernetes exempts %s", attributes.GetKind().Kind), matched{}, false
	}
	if isReview(attributes.GetResource().GroupResource()) && !e.request.WebhooksForReviews {
		return f.none(ReasonExempt, "it is not called for reviews: Kubernetes exempts %s from webhooks since 1.37", attributes.GetResource().Resource), matched{}, false
	}
	found, why := e.match(criteria{MatchResources: w.match}, attributes)
	if why != nil {
		return why.as(f, "it is not called: ", false), matched{}, false // for an error of a selector, the API server refuses the request
	}
	return f, found, true
}

// webhook returns what a webhook does for the request.
func (e *explanation) webhook(w *webhookOf) Finding {
	f, found, matches := e.matchWebhook(w)
	if !matches {
		return f
	}
	if len(w.MatchConditions) == 0 {
		return f.with(EffectCalled, "", "it is called")
	}
	ignore := *w.FailurePolicy == admissionregistrationv1.Ignore
	in, why := e.input(e.attributes(w.mutates()), found)
	if why == nil {
		why = w.conditions.match(in, nil)
	}
	if why != nil {
		return why.as(f, "it is not called: ", ignore)
	}
	return f.with(EffectCalled, "", "it is called")
}
