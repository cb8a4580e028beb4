package reach

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"
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

// Checked is what a TypeChecker checks expressions for.
type Checked struct {
	// Resource is that of the request, Kind the kind of its object. With a subresource, it can have another
	// group than Resource: a Scale.
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Version differs if the schema of the kind does. It is empty for a kind whose schema never changes.
	Version string
}

// TypeChecker checks expressions of policies. It keeps the results, because scenarios often have the same
// policies. Its methods are safe for concurrent use. The zero value is ready.
type TypeChecker struct {
	mu    sync.Mutex
	known map[string][]TypeWarning
}

// Check checks the expressions of the policies for one kind of object, with the schemas that an API server
// publishes. It finds a field that the schema does not have, for example, where the evaluation is no error
// because of has(). A kube-controller-manager does the same and writes the result to status.typeChecking of a
// ValidatingAdmissionPolicy, but only for its validations and only if no rule has a wildcard. Mutations are
// not checked. An expression that uses variables has no warnings if one of the variables has some. A policy
// without a rule for the version of the resource is not checked, because it gets an object of another
// version. Check returns an error if the kind has no schema.
func (c *TypeChecker) Check(a *Admission, of Checked, client discovery.DiscoveryInterface) ([]TypeWarning, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	schemas := &resolver.ClientDiscoveryResolver{Discovery: client}
	var all []TypeWarning
	var found *spec.Schema
	for _, p := range a.policies {
		if !p.hasRuleFor(of.Resource.GroupVersion()) {
			continue
		}
		text, err := json.Marshal([]any{of, p.kind, p.name, p.spec})
		if err != nil {
			return nil, err
		}
		warnings, known := c.known[string(text)]
		if !known {
			if found == nil {
				if found, err = schemas.ResolveSchema(of.Kind); err != nil {
					return nil, err
				}
			}
			warnings = p.typeCheck(of.Kind, &validating.TypeChecker{SchemaResolver: oneSchema{schemas, of.Kind, found}, RestMapper: oneKind{kind: of.Kind}})
			if c.known == nil {
				c.known = map[string][]TypeWarning{}
			}
			c.known[string(text)] = warnings
		}
		all = append(all, warnings...)
	}
	return all, nil
}

// hasRuleFor reports whether a rule of the policy names a version.
func (p *policy) hasRuleFor(version schema.GroupVersion) bool {
	return p.spec.MatchConstraints != nil && slices.ContainsFunc(p.spec.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		has := func(list []string, name string) bool {
			return slices.Contains(list, name) || slices.Contains(list, "*")
		}
		return has(r.APIGroups, version.Group) && has(r.APIVersions, version.Version)
	})
}

// typeCheck checks the expressions of a policy for one kind: first the variables.
func (p *policy) typeCheck(kind schema.GroupVersionKind, checker *validating.TypeChecker) []TypeWarning {
	// The checker adds a number to the names of types.
	numbered := regexp.MustCompile(`\b` + regexp.QuoteMeta(kind.Kind) + `\d+`)
	context := checker.CreateContext(p.forKind(kind))
	check := func(list []typedExpression) (warnings []TypeWarning) {
		for _, e := range list {
			for _, result := range checker.CheckExpression(context, e.expression) {
				if result.Issues != nil {
					warnings = append(warnings, TypeWarning{p.kind, p.name, e.field, kind, numbered.ReplaceAllString(result.Issues.Error(), kind.Kind)})
				}
			}
		}
		return warnings
	}
	variables, others := p.typed()
	if warnings := check(variables); len(warnings) > 0 {
		return warnings
	}
	return check(others)
}

// typedExpression is an expression of a policy that is checked.
type typedExpression struct{ field, expression string }

// typed returns the expressions of the variables, and the others.
func (p *policy) typed() (variables, others []typedExpression) {
	for i, v := range p.spec.Variables {
		variables = append(variables, typedExpression{fmt.Sprintf("spec.variables[%d].expression", i), v.Expression})
	}
	add := func(expression, field string, index int) {
		if expression != "" {
			others = append(others, typedExpression{fmt.Sprintf(field, index), expression})
		}
	}
	for i, c := range p.spec.MatchConditions {
		add(c.Expression, "spec.matchConditions[%d].expression", i)
	}
	for i, v := range p.spec.Validations {
		add(v.Expression, "spec.validations[%d].expression", i)
		add(v.MessageExpression, "spec.validations[%d].messageExpression", i)
	}
	for i, a := range p.spec.AuditAnnotations {
		add(a.ValueExpression, "spec.auditAnnotations[%d].valueExpression", i)
	}
	return variables, others
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

// oneSchema is a SchemaResolver that has the schema of one kind already.
type oneSchema struct {
	resolver.SchemaResolver
	kind   schema.GroupVersionKind
	schema *spec.Schema
}

// ResolveSchema implements resolver.SchemaResolver.
func (o oneSchema) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if kind == o.kind {
		return o.schema, nil
	}
	return o.SchemaResolver.ResolveSchema(kind)
}
