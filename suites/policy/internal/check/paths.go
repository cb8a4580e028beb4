package check

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
			for _, match := range objectPath.FindAllStringSubmatch(literal.ReplaceAllString(expression, "''"), -1) {
				steps := strings.Split(strings.ReplaceAll(match[1], "?", ""), ".")[1:]
				if match[2] != "" {
					steps = steps[:len(steps)-1] // the name of a function
				}
				var path []any
				for _, step := range steps {
					path = append(path, step)
				}
				missing := MissingPath{p.GetKind() + " " + p.GetName(), "object." + strings.Join(steps, ".")}
				if len(path) > 0 && len(kinds) > 0 && !slices.Contains(found, missing) && !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return b.canHave(kind, path) }) {
					found = append(found, missing)
				}
			}
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

// kindsOf returns the kinds of the objects that the resource rules of a policy match.
func (b *bench) kindsOf(p Policy) []schema.GroupVersionKind {
	rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "matchConstraints", "resourceRules")
	var kinds []schema.GroupVersionKind
	for _, served := range b.server.Optional().Resources() {
		if slices.ContainsFunc(rules, func(rule any) bool { return ruleMatches(rule, served) }) {
			kinds = append(kinds, schema.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: served.Kind})
		}
	}
	return kinds
}

// ruleMatches reports whether a rule names a resource or subresource.
func ruleMatches(rule any, served metav1.APIResource) bool {
	if !ruleHas(rule, "apiGroups", served.Group) || !ruleHas(rule, "apiVersions", served.Version) {
		return false
	}
	parent, sub, isSub := strings.Cut(served.Name, "/")
	return ruleNames(rule, served.Name) || ruleNames(rule, "*/*") || !isSub && ruleNames(rule, "*") || isSub && (ruleNames(rule, parent+"/*") || ruleNames(rule, "*/"+sub))
}

// ruleNames reports whether a rule has a resource, as it is written.
func ruleNames(rule any, resource string) bool {
	fields, _ := rule.(map[string]any)
	values, _, _ := unstructured.NestedStringSlice(fields, "resources")
	return slices.Contains(values, resource)
}
