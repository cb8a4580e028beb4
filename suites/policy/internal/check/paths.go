package check

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admissiontest/admissiontest/internal/fields"
)

// MissingPath is a path in an expression of a policy that no kind has which the policy matches.
type MissingPath struct {
	// Policy is the kind and name of the policy.
	Policy string
	// Path is the path as it is written: object.spec.contaners.
	Path string
}

// findMissing finds the paths in expressions that no kind has which the policy matches, and what is not known about them.
// An access that may be about several paths is missing if no kind has any of them.
func (b *bench) findMissing() {
	b.observed.NotKnown = map[string][]string{}
	for _, p := range b.subject.List() {
		name, kinds := p.GetKind()+" "+p.GetName(), b.kindsOf(p)
		for _, expression := range p.expressionsAt() {
			r := p.reader([]string{expression.text}, "object", "oldObject")
			for _, each := range r.reads {
				exists, known := len(kinds) == 0, false
				for _, kind := range kinds {
					for _, path := range each.paths {
						inList := each.in && b.schema(kind, path[:len(path)-1])["items"] != nil
						known = known || inList || b.schema(kind, path) != nil
						exists = exists || inList || b.canHave(kind, path)
					}
				}
				missing := MissingPath{name, "object." + each.paths[0].String()}
				if exists && !known {
					r.lost = append(r.lost, missing.Path)
				} else if !exists && !slices.Contains(b.observed.Missing, missing) {
					b.observed.Missing = append(b.observed.Missing, missing)
				}
			}
			if len(r.lost) > 0 {
				b.observed.NotKnown[name] = append(b.observed.NotKnown[name], expression.path.String()+": "+r.lost[0])
			}
		}
	}
}

// schema returns the schema that a kind has at a path, or nil if it has none or it is not known.
func (b *bench) schema(kind schema.GroupVersionKind, path Path) map[string]any {
	return fields.SchemaAt(b.openAPI[kind.GroupVersion()], kind, path)
}

// readPaths are what the policies read of objects.
type readPaths struct {
	reads []read
	// all is true if any path may be read, or written by a mutation.
	all bool
}

// readPaths returns what some expressions of the policies read.
func (s Subject) readPaths(expressions func(Policy) []string) readPaths {
	var found readPaths
	for _, p := range s.List() {
		reads, known := p.reads(expressions(p), "object", "oldObject")
		found.reads = append(found.reads, reads...)
		found.all = found.all || !known || p.Mutating()
	}
	return found
}

// have reports whether a path is read, or is above one that is read.
func (r readPaths) have(path Path) bool {
	return r.all || slices.ContainsFunc(r.reads, func(each read) bool {
		return slices.ContainsFunc(each.paths, func(p Path) bool { return (len(path) <= len(p) || each.whole) && matches(p, path) })
	})
}

// matches reports whether the steps that two paths both have are the same. A key that is read of a list is one of its elements:
// 'ALL' in drop.
func matches(read, path Path) bool {
	for i := range min(len(read), len(path)) {
		_, key := read[i].(string)
		_, index := path[i].(int)
		if read[i] != any(each{}) && read[i] != path[i] && (!key || !index) {
			return false
		}
	}
	return true
}

// deciding returns the paths of a list at which values decide: an expression reads the value, or something above it, and nothing
// more exact. If there is none, what is read is not known, and all are returned.
func (s Subject) deciding(all []Path) []Path {
	reads := s.readPaths(Policy.deciding)
	for _, k := range s.keys() {
		reads.reads = append(reads.reads, read{paths: []Path{{"metadata", k.in, k.key}}})
	}
	var found []Path
	for _, path := range all {
		if reads.have(path) || reads.endAbove(path) {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return all
	}
	return found
}

// endAbove reports whether a path is below one that is read, below which nothing else is.
func (r readPaths) endAbove(path Path) bool {
	var ends []Path
	for _, each := range r.reads {
		ends = append(ends, each.paths...)
	}
	return slices.ContainsFunc(ends, func(end Path) bool {
		return len(end) < len(path) && matches(end, path) && !slices.ContainsFunc(ends, func(p Path) bool { return len(p) > len(end) && p.below(end) })
	})
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
