package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// readSchemas reads the OpenAPI documents for the samples and for what the policies match.
func (b *bench) readSchemas(ctx context.Context) error {
	b.openAPI = map[schema.GroupVersion]map[string]any{}
	read := b.server.Optional().OpenAPI
	if read == nil {
		return nil
	}
	var all []schema.GroupVersionKind
	for _, p := range b.subject.List() {
		all = append(append(all, b.kindsOf(p)...), p.paramKinds()...)
	}
	for _, s := range b.samples {
		all = append(all, s.kind)
	}
	for _, kind := range all {
		version := kind.GroupVersion()
		if _, known := b.openAPI[version]; known || version.Version == "*" {
			continue
		}
		document, err := vary.Document(ctx, read, version)
		if err != nil {
			return err
		}
		b.openAPI[version] = document
	}
	return nil
}

// lacks says why no request of a group can be made.
func (b *bench) lacks() {
	lacks := b.observed.Lacks
	if !slices.ContainsFunc(b.samples, func(s sample) bool { return s.bad >= 0 && s.stored == nil && len(b.otherVersions(s.kind)) > 0 }) {
		lacks[Versions] = "the API server serves no kind of a bad object that is created in another version"
	}
	if len(b.subject.keys()) == 0 {
		lacks[Exempted] = "no objectSelector and no matchCondition names a label or annotation of the object"
	}
	lacks[Constants] = "no expression has startsWith, endsWith or contains with a constant that does not end in a separator"
	for _, c := range b.subject.openConstants() {
		lacks[Constants] = fmt.Sprintf("no good object has a value, and no bad one a requester, for which %s(%q) is true", c.open, c.text)
	}
}

// MissingPath is a path in an expression of a policy that no kind has which the policy matches.
type MissingPath struct {
	// Policy is the kind and name of the policy.
	Policy string
	// Path is the path as it is written: object.spec.contaners.
	Path string
}

// findMissing finds the paths in expressions of ValidatingAdmissionPolicies that no kind has which the policy matches, or that its param
// does not have, and what is not known about them. An access that may be about several paths is missing if no kind has any of them.
func (b *bench) findMissing() {
	for _, p := range b.subject.List() {
		for _, expression := range p.expressionsAt() {
			r := p.reads([]string{expression.text}, "object", "oldObject", "params")
			for _, each := range r.Reads {
				missing := MissingPath{p.GetKind() + " " + p.GetName(), "object." + each.Paths[0].String()}
				kinds := b.kindsOf(p)
				if param, is := each.Paths[0].OfParam(); is {
					missing.Path, kinds = "params."+param.String(), p.paramKinds()
				}
				switch exists, known := b.exists(each, kinds); {
				case p.Mutating():
				case exists && !known:
					r.Lost = append(r.Lost, missing.Path)
				case !exists && !slices.Contains(b.observed.Missing, missing):
					b.observed.Missing = append(b.observed.Missing, missing)
				}
			}
			if len(r.Lost) > 0 && !p.Mutating() {
				b.observed.NotKnown = append(b.observed.NotKnown, fmt.Sprintf("%s %s, %s: %s", p.GetKind(), p.GetName(), expression.path, r.Lost[0]))
			}
		}
	}
}

// exists reports whether a kind can have what is read, and whether that is known: what has any field has this one.
func (b *bench) exists(read cel.Read, kinds []schema.GroupVersionKind) (exists, known bool) {
	exists, known = len(kinds) == 0, len(kinds) == 0
	for _, kind := range kinds {
		for _, path := range read.Paths {
			path, _ = path.OfParam()
			inList := read.In && len(path) > 0 && b.schema(kind, path[:len(path)-1])["items"] != nil
			known = known || inList || b.schema(kind, path) != nil
			exists = exists || inList || b.canHave(kind, path)
			for i := range path {
				known = known || b.schema(kind, path[:i])["x-kubernetes-preserve-unknown-fields"] == true
			}
		}
	}
	return exists, known
}

// schema returns the schema that a kind has at a path, or nil if it has none or it is not known.
func (b *bench) schema(kind schema.GroupVersionKind, path cel.Path) map[string]any {
	return kinds.SchemaAt(b.openAPI[kind.GroupVersion()], kind, path)
}

// readPaths are what the policies read of objects.
type readPaths struct {
	reads []cel.Read
	// all is true if any path may be read, or written by a mutation, and lost if the paths of some parts are not known.
	all, lost bool
}

// readPaths returns what some expressions of the policies read.
func (s Subject) readPaths(expressions func(Policy) []string) readPaths {
	found := readPaths{all: len(s.webhooks()) > 0}
	for _, p := range s.List() {
		r := p.reads(expressions(p), "object", "oldObject")
		found.reads = append(found.reads, r.Reads...)
		found.all, found.lost = found.all || r.Unknown || p.Mutating(), found.lost || len(r.Lost) > 0
	}
	return found
}

// have reports whether a path is read, or is above one that is read.
func (r readPaths) have(path cel.Path) bool {
	return r.all || slices.ContainsFunc(r.reads, func(each cel.Read) bool {
		return slices.ContainsFunc(each.Paths, func(p cel.Path) bool { return (len(path) <= len(p) || each.Whole) && p.Matches(path) })
	})
}

// deciding returns the paths of a list at which values decide: an expression reads the value, or something above it, and nothing
// more exact. If there is none, what is read is not known, and all are returned.
func (s Subject) deciding(all []cel.Path) []cel.Path {
	reads := s.readPaths(Policy.deciding)
	for _, k := range s.keys() {
		reads.reads = append(reads.reads, cel.Read{Paths: []cel.Path{{"metadata", k.in, k.key}}})
	}
	var found []cel.Path
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
func (r readPaths) endAbove(path cel.Path) bool {
	var ends []cel.Path
	for _, each := range r.reads {
		ends = append(ends, each.Paths...)
	}
	return slices.ContainsFunc(ends, func(end cel.Path) bool {
		return len(end) < len(path) && end.Matches(path) && !slices.ContainsFunc(ends, func(p cel.Path) bool { return len(p) > len(end) && p.Below(end) })
	})
}

// canHave reports whether a kind has a path, or its schema is not known.
func (b *bench) canHave(kind schema.GroupVersionKind, path []any) bool {
	document := b.openAPI[kind.GroupVersion()]
	missing, known := kinds.MissingInDocument(document, kind, path)
	return document == nil || !known || missing == nil
}

// served returns the kinds that the API server serves of the resources and subresources with a property, each once.
func (b *bench) served(has func(metav1.APIResource) bool) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, each := range b.server.Optional().Resources() {
		kind := schema.GroupVersionKind{Group: each.Group, Version: each.Version, Kind: each.Kind}
		if has(each) && !slices.Contains(found, kind) {
			found = append(found, kind)
		}
	}
	return found
}

// isObject reports whether a resource is one of objects in one version, and no subresource.
func isObject(served metav1.APIResource) bool {
	return served.Version != "*" && !strings.Contains(served.Name, "/")
}

// kindsOf returns the kinds of the objects that the resource rules of a policy match.
func (b *bench) kindsOf(p Policy) []schema.GroupVersionKind {
	return b.served(func(each metav1.APIResource) bool {
		return p.matches(each, admission.Create, admission.Update, admission.Delete, admission.Connect)
	})
}

// matches reports whether a resource rule of the policy matches one of the operations on a resource or subresource.
func (p Policy) matches(served metav1.APIResource, operations ...admission.Operation) bool {
	return slices.ContainsFunc(p.resourceRules(), func(rule admissionregistrationv1.RuleWithOperations) bool {
		return vary.Matches(rule, served, operations...)
	})
}
