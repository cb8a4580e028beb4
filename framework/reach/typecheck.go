package reach

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TypeWarning is what the type check of Kubernetes says about an expression of a policy.
type TypeWarning struct {
	// Kind and Name identify the policy, Field is the field with the expression:
	// "spec.validations[0].expression".
	Kind, Name, Field string
	// Object is the kind of object for which the expression was checked.
	Object schema.GroupVersionKind
	// Text is the message of the CEL compiler.
	Text string
}

// TypeChecker checks expressions of policies. It keeps the results, because scenarios often have the same
// policies. Its methods are safe for concurrent use. The zero value is ready.
type TypeChecker struct {
	mu      sync.Mutex
	known   map[string]map[schema.GroupVersionKind][]TypeWarning // by the policy and the version of a schema
	schemas map[string]*spec.Schema
}

// Checked says what a TypeChecker checks expressions for.
type Checked struct {
	// Kind is the kind of object that a policy gets.
	Kind schema.GroupVersionKind
	// Version differs if the schema of the kind does. It is empty for a kind whose schema never changes.
	Version string
	// Resources knows the kinds of resources, Client the schemas that the API server publishes.
	Resources runtime.EquivalentResourceMapper
	Client    discovery.DiscoveryInterface
}

// Check checks the expressions of the policies for one kind of object. It finds a field that the schema does not
// have, for example, where the evaluation is no error because of has(). A kube-controller-manager does the
// same and writes the result to status.typeChecking of a ValidatingAdmissionPolicy, but only for its
// validations. As there, a policy whose rules have wildcards is not checked. A policy with rules for several
// kinds has a warning only if an expression is wrong for each of them, because has() can tell them apart.
// Mutations are not checked. An expression that uses variables has no warnings if one of the variables has
// some. Without a schema there are no warnings.
func (c *TypeChecker) Check(a *Admission, of Checked) ([]TypeWarning, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []TypeWarning
	for _, p := range a.policies {
		text, err := json.Marshal([]any{of.Version, p.kind, p.name, p.spec})
		if err != nil {
			return nil, err
		}
		warnings, known := c.known[string(text)][of.Kind]
		if !known {
			checked, err := p.typeCheck(of, c.resolver(of.Client))
			if err != nil {
				return nil, err
			}
			if c.known == nil {
				c.known = map[string]map[schema.GroupVersionKind][]TypeWarning{}
			}
			if c.known[string(text)] == nil {
				c.known[string(text)] = map[schema.GroupVersionKind][]TypeWarning{}
			}
			maps.Copy(c.known[string(text)], checked)
			warnings = checked[of.Kind]
		}
		all = append(all, warnings...)
	}
	return all, nil
}

// resolver returns a resolver of schemas that decodes each version of a schema once. The caller holds c.mu.
func (c *TypeChecker) resolver(client discovery.DiscoveryInterface) resolver.SchemaResolver {
	if c.schemas == nil {
		c.schemas = map[string]*spec.Schema{}
	}
	return &schemas{ClientDiscoveryResolver: resolver.ClientDiscoveryResolver{Discovery: client}, known: c.schemas}
}

// schemas is a resolver with a memory. The address of a document changes with its content.
type schemas struct {
	resolver.ClientDiscoveryResolver

	paths map[string]openapi.GroupVersion
	known map[string]*spec.Schema
}

// ResolveSchema implements resolver.SchemaResolver.
func (s *schemas) ResolveSchema(kind schema.GroupVersionKind) (found *spec.Schema, err error) {
	if s.paths == nil {
		if s.paths, err = s.Discovery.OpenAPIV3().Paths(); err != nil {
			return nil, err
		}
	}
	path := "apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "api/" + kind.Version
	}
	key := kind.String()
	if document := s.paths[path]; document != nil {
		key += " " + document.ServerRelativeURL()
	}
	if found = s.known[key]; found != nil {
		return found, nil
	}
	if found, err = s.ClientDiscoveryResolver.ResolveSchema(kind); err == nil {
		withQuantities(found)
		s.known[key] = found
	}
	return found, err
}

// withQuantities makes quantities strings. An OpenAPI document says that they are strings or numbers, for which CEL has no type: Kubernetes
// warns that spec.resources.requests of a PersistentVolumeClaim is undefined (k8s.io/apiserver/pkg/cel/common/schemas.go).
func withQuantities(s *spec.Schema) {
	if len(s.Type) == 0 && len(s.OneOf) == 2 && s.Format == "" {
		s.Type = spec.StringOrArray{"string"}
	}
	for name, property := range s.Properties {
		withQuantities(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		withQuantities(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withQuantities(s.AdditionalProperties.Schema)
	}
}

// wrongCheck is in what the type check says about each expression that uses the authorizer, because it does not know the type
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go).
const wrongCheck = "unexpected failed resolution of 'kubernetes.authorization."

// mostKinds is the number of kinds for which Kubernetes checks the types of a policy.
const mostKinds = 10

// kinds returns the kinds of the rules of the policy; none if there is a wildcard.
func (p *policy) kinds(resources runtime.EquivalentResourceMapper) []schema.GroupVersionKind {
	if p.spec.MatchConstraints == nil {
		return nil
	}
	var all []schema.GroupVersionKind
	for _, rule := range p.spec.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				for _, resource := range rule.Resources {
					if strings.Contains(group+version+resource, "*") {
						return nil
					}
					name, subresource, _ := strings.Cut(resource, "/")
					kind := resources.KindFor(schema.GroupVersionResource{Group: group, Version: version, Resource: name}, subresource)
					if !kind.Empty() && !slices.Contains(all, kind) {
						all = append(all, kind)
					}
				}
			}
		}
	}
	return all
}

// typeCheck checks the expressions of a policy, first the variables, and returns the warnings for each kind of its rules
// that has a schema. One of these must be the kind that is asked for, if it is one of the rules.
func (p *policy) typeCheck(of Checked, schemas resolver.SchemaResolver) (map[schema.GroupVersionKind][]TypeWarning, error) {
	kinds := p.kinds(of.Resources)
	if len(kinds) > mostKinds || !slices.Contains(kinds, of.Kind) {
		return map[schema.GroupVersionKind][]TypeWarning{of.Kind: nil}, nil
	}
	checked := map[schema.GroupVersionKind][]TypeWarning{}
	for _, kind := range kinds {
		switch _, err := schemas.ResolveSchema(kind); {
		case err == nil:
			checked[kind] = nil
		case kind == of.Kind:
			return nil, fmt.Errorf("read the schema of %s: %w", kind.Kind, err) // the checker would ignore it, as it may for other kinds
		}
	}
	checker := &validating.TypeChecker{SchemaResolver: schemas, RestMapper: kindsOf{resources: of.Resources}}
	only := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	only.Spec.ParamKind, only.Spec.Variables, only.Spec.MatchConstraints = p.spec.ParamKind, p.spec.Variables, p.spec.MatchConstraints
	context := checker.CreateContext(only)
	check := func(list []typedExpression) (found bool) {
		for _, e := range list {
			results := slices.DeleteFunc(checker.CheckExpression(context, e.expression), func(r *validating.TypeCheckingResult) bool {
				return r.Issues == nil || strings.Contains(r.Issues.Error(), wrongCheck)
			})
			if len(results) < len(kinds) {
				continue
			}
			found = true
			for _, r := range results {
				// The checker adds a number to the names of types.
				numbered := regexp.MustCompile(`\b` + regexp.QuoteMeta(r.GVK.Kind) + `\d+`)
				checked[r.GVK] = append(checked[r.GVK], TypeWarning{p.kind, p.name, e.field, r.GVK, numbered.ReplaceAllString(r.Issues.Error(), r.GVK.Kind)})
			}
		}
		return found
	}
	variables, others := p.typed()
	if !check(variables) {
		check(others)
	}
	return checked, nil
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

// kindsOf is a RESTMapper that knows the kinds of resources.
type kindsOf struct {
	meta.RESTMapper
	resources runtime.EquivalentResourceMapper
}

// KindsFor implements meta.RESTMapper.
func (k kindsOf) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return []schema.GroupVersionKind{k.resources.KindFor(resource, "")}, nil
}
