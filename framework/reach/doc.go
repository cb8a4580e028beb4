// Package reach computes which webhooks and policies of an admission configuration apply to a
// request, and says why the other ones do not apply.
//
//	admission, err := reach.New(manifests)
//	findings, err := admission.Explain(ctx, request, cluster)
//
// There is a Finding for each webhook, for each policy with each of its bindings, for each policy
// without a binding, and for each binding without a policy:
//
//	ValidatingAdmissionPolicy "owners", binding "owners": it does not apply: the namespaceSelector does not match namespace "a": label "team" is missing, want "blue"
//
// The package is public for programs that check a configuration without installing it on an API
// server: linters, and tests of webhook configurations and policies.
//
// # Promise
//
// Package reach uses the code of k8s.io/apiserver for rules, scope, equivalent resources,
// selectors, params, match conditions and expressions, and reimplements none of it. A test compares
// the results with a real kube-apiserver, for thousands of random pairs of configuration and
// request.
//
// # Not promised
//
// Package reach does not set the fields that an API server sets, such as defaults, and CEL
// expressions can read these fields: give the object as it is on the API server at that point.
// Expressions are compiled with the k8s.io/apiserver in your go.mod. If an expression does not
// compile with that version, the Finding has EffectUnknown. The package evaluates mutations only for
// errors that failurePolicy Ignore hides, and does not merge with the schema of the kind. It does not
// evaluate audit annotations, and does not call webhooks.
package reach
