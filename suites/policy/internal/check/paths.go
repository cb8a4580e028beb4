package check

import (
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/cel"

	"github.com/admissiontest/admissiontest/internal/fields"
)

// MissingPath is a path in an expression of a policy that no kind has which the policy matches.
type MissingPath struct {
	// Policy is the kind and name of the policy.
	Policy string
	// Path is the path as it is written: object.spec.contaners.
	Path string
}

// objectPath is a path below the object in an expression, up to an index or the call of a function.
var objectPath = regexp.MustCompile(`(?:^|[^.\w])(?:object|oldObject)((?:\.\??[A-Za-z_]\w*)+)(\s*\()?`)

// missingPaths returns the paths in expressions that no kind has which the policy matches. Paths below variables are not
// known.
func (b *bench) missingPaths() []MissingPath {
	var found []MissingPath
	for _, p := range b.subject.List() {
		kinds := b.kindsOf(p)
		for _, expression := range p.expressions() {
			for _, path := range objectPaths(expression) {
				missing := MissingPath{p.GetKind() + " " + p.GetName(), "object." + path.String()}
				if len(kinds) > 0 && !slices.Contains(found, missing) && !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return b.canHave(kind, path) }) {
					found = append(found, missing)
				}
			}
		}
	}
	return found
}

// objectPaths returns the paths below the object in an expression. CEL writes some names of fields in another way:
// https://kubernetes.io/docs/reference/using-api/cel/#escaping.
func objectPaths(expression string) []Path {
	var found []Path
	for _, match := range objectPath.FindAllStringSubmatch(literal.ReplaceAllString(expression, "''"), -1) {
		steps := strings.Split(strings.ReplaceAll(match[1], "?", ""), ".")[1:]
		if match[2] != "" {
			steps = steps[:len(steps)-1] // the name of a function
		}
		var path Path
		for _, step := range steps {
			if name, ok := cel.Unescape(step); ok {
				step = name
			}
			path = append(path, step)
		}
		if len(path) > 0 {
			found = append(found, path)
		}
	}
	return found
}

// canHave reports whether a kind has a path, or its schema is not known.
func (b *bench) canHave(kind schema.GroupVersionKind, path []any) bool {
	document := b.openAPI[kind.GroupVersion()]
	missing, known := fields.InDocument(document, kind, path)
	return document == nil || !known || missing == nil
}

// rules returns the resource rules of the policy.
func (p Policy) rules() []any {
	found, _, _ := unstructured.NestedSlice(p.Object, "spec", "matchConstraints", "resourceRules")
	return found
}

// kindsOf returns the kinds of the objects that the resource rules of a policy match.
func (b *bench) kindsOf(p Policy) []schema.GroupVersionKind {
	resourceRules := p.rules()
	var kinds []schema.GroupVersionKind
	for _, served := range b.server.Optional().Resources() {
		if slices.ContainsFunc(resourceRules, func(rule any) bool {
			return ruleMatches(rule, served, admission.Create, admission.Update, admission.Delete, admission.Connect)
		}) {
			kinds = append(kinds, schema.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: served.Kind})
		}
	}
	return kinds
}

// ruleMatches reports whether a rule matches one of the operations on a resource or subresource.
func ruleMatches(rule any, served metav1.APIResource, operations ...admission.Operation) bool {
	fields, _ := rule.(map[string]any)
	var decoded admissionregistrationv1.NamedRuleWithOperations
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &decoded); err != nil {
		return false // the API server says what is wrong
	}
	resource, subresource, _ := strings.Cut(served.Name, "/")
	namespace := ""
	if served.Namespaced {
		namespace = metav1.NamespaceDefault
	}
	return slices.ContainsFunc(operations, func(operation admission.Operation) bool {
		attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, namespace, "", schema.GroupVersionResource{Group: served.Group, Version: served.Version, Resource: resource}, subresource, operation, nil, false, nil)
		return (&rules.Matcher{Rule: decoded.RuleWithOperations, Attr: attributes}).Matches()
	})
}
