package reach

import (
	"fmt"
	"regexp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
)

// TypeWarning is what the type check of Kubernetes says about an expression of a policy.
type TypeWarning struct {
	// Kind and Name are those of the policy, Field is the field with the expression:
	// "spec.validations[0].expression".
	Kind, Name, Field string
	// Object is the kind of object for which the expression was checked.
	Object schema.GroupVersionKind
	// Text is the message of the CEL compiler.
	Text string
}

// TypeCheck checks the expressions of the policies for one kind of object, with the schemas of the API
// server. It finds a field that the schema does not have, for example, where the evaluation is no error
// because of has(). A kube-controller-manager does the same and writes the result to
// status.typeChecking of a ValidatingAdmissionPolicy, but only for its validations and only if no rule
// has a wildcard. Mutations are not checked. Expressions that do not compile without types, and kinds without
// a schema, have no warnings.
func (a *Admission) TypeCheck(kind schema.GroupVersionKind, schemas discovery.DiscoveryInterface) []TypeWarning {
	checker := &validating.TypeChecker{SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: schemas}, RestMapper: oneKind{kind: kind}}
	var warnings []TypeWarning
	for _, p := range a.policies {
		checked := checker.CreateContext(p.forKind(kind))
		for _, e := range p.typed() {
			for _, result := range checker.CheckExpression(checked, e.expression) {
				if result.Issues == nil || result.Err != nil {
					continue
				}
				// The checker adds a number to the names of types.
				text := regexp.MustCompile(regexp.QuoteMeta(kind.Kind)+`\d+`).ReplaceAllString(result.Issues.Error(), kind.Kind)
				warnings = append(warnings, TypeWarning{p.kind, p.name, e.field, kind, text})
			}
		}
	}
	return warnings
}

// typedExpression is an expression of a policy that TypeCheck checks.
type typedExpression struct{ field, expression string }

func (p *policy) typed() []typedExpression {
	var all []typedExpression
	add := func(expression, field string, arguments ...any) {
		if expression != "" {
			all = append(all, typedExpression{fmt.Sprintf(field, arguments...), expression})
		}
	}
	for i, c := range p.spec.MatchConditions {
		add(c.Expression, "spec.matchConditions[%d].expression", i)
	}
	for i, v := range p.spec.Variables {
		add(v.Expression, "spec.variables[%d].expression", i)
	}
	for i, v := range p.spec.Validations {
		add(v.Expression, "spec.validations[%d].expression", i)
		add(v.MessageExpression, "spec.validations[%d].messageExpression", i)
	}
	for i, a := range p.spec.AuditAnnotations {
		add(a.ValueExpression, "spec.auditAnnotations[%d].valueExpression", i)
	}
	return all
}

// forKind returns what the checker needs of a policy, with a rule for one kind: see oneKind.
func (p *policy) forKind(kind schema.GroupVersionKind) *admissionregistrationv1.ValidatingAdmissionPolicy {
	only := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	only.Spec.ParamKind, only.Spec.Variables = p.spec.ParamKind, p.spec.Variables
	rule := admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{kind.Version}, Resources: []string{"one"}}
	only.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
		{RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: rule}},
	}}
	return only
}

// oneKind is a RESTMapper for which every resource has one kind.
type oneKind struct {
	meta.RESTMapper
	kind schema.GroupVersionKind
}

// KindsFor implements meta.RESTMapper.
func (o oneKind) KindsFor(schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return []schema.GroupVersionKind{o.kind}, nil
}
