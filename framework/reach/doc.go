// Package reach says whether the webhooks and policies of an admission configuration decide about a
// request, and if they do not, why not.
//
//	admission, err := reach.New(manifests)
//	findings, err := admission.Explain(ctx, request, cluster)
//
// There is a Finding for each webhook, for each policy with each of its bindings, for each policy
// without a binding, and for each binding without a policy:
//
//	ValidatingAdmissionPolicy "owners", binding "owners": it does not apply: the namespaceSelector does not match namespace "a": label "team" is missing, want "blue"
//
// The package is public for programs that check a configuration without an API server that
// runs it: linters, and tests of webhook configurations and policies.
//
// # Promise
//
// Package reach asks the predicates of k8s.io/apiserver: rules, scope, equivalent resources,
// selectors, params, match conditions and expressions. It writes none of them again. A test compares
// it with a real kube-apiserver, for thousands of random pairs of configuration and request.
//
// # Not promised
//
// Package reach sees what it is given. CEL expressions can read fields that the API server sets, such
// as defaults: give the object as the API server has it at that moment. It uses the CEL library of
// k8s.io/apiserver that it is compiled with; an expression that this library does not compile gets
// EffectUnknown. It does not evaluate mutations and audit annotations, and does not call webhooks.
package reach
