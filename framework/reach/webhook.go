package reach

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// webhook returns what a webhook does for the request.
func (e *explanation) webhook(w *webhookOf) Finding {
	f := Finding{Kind: w.kind, Name: w.configuration, Webhook: w.Name}
	attributes := e.validating
	if w.kind == "MutatingWebhookConfiguration" {
		attributes = e.mutating
	}
	if rules.IsExemptAdmissionConfigurationResource(attributes) {
		return f.none(ReasonExempt, "it is not called for admission configurations: Kubernetes exempts %s", attributes.GetKind().Kind)
	}
	c := criteria{matchPolicy: *w.MatchPolicy, namespaceSelector: w.NamespaceSelector, objectSelector: w.ObjectSelector}
	for _, rule := range w.Rules {
		c.rules = append(c.rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	found, why := e.match(c, attributes)
	if why != nil {
		return why.as(f, "it is not called: ", false) // for an error of a selector, the API server refuses the request
	}
	if len(w.MatchConditions) == 0 {
		return f.with(EffectCalled, "", "it is called")
	}
	ignore := *w.FailurePolicy == admissionregistrationv1.Ignore
	in, why := e.input(attributes, found)
	if why == nil {
		why = w.conditions.match(in, nil)
	}
	if why != nil {
		return why.as(f, "it is not called: ", ignore)
	}
	return f.with(EffectCalled, "", "it is called")
}
