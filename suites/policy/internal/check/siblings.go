package check

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/fields"
	"github.com/admissiontest/admissiontest/internal/object"
)

// readSchemas reads the OpenAPI documents for the samples and for what the policies match.
func (b *bench) readSchemas(ctx context.Context, all []sample) error {
	b.openAPI = map[schema.GroupVersion]map[string]any{}
	read := b.server.Optional().OpenAPI
	if read == nil {
		return nil
	}
	versions := b.matched()
	for _, s := range all {
		kind, err := object.Kind(s.object)
		if err != nil {
			return err
		}
		versions = append(versions, kind.GroupVersion())
	}
	for _, version := range versions {
		if _, known := b.openAPI[version]; known {
			continue
		}
		document, err := read(ctx, version)
		if err != nil {
			return err
		}
		b.openAPI[version] = document
	}
	return nil
}

// matched returns the served groups and versions that the rules of the policies name.
func (b *bench) matched() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, served := range b.server.Optional().Resources() {
		version := schema.GroupVersion{Group: served.Group, Version: served.Version}
		if served.Version == "*" || slices.Contains(all, version) {
			continue
		}
		for _, p := range b.subject.List() {
			rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "matchConstraints", "resourceRules") // the API server says what is wrong
			if slices.ContainsFunc(rules, func(rule any) bool {
				return ruleHas(rule, "apiGroups", version.Group) && ruleHas(rule, "apiVersions", version.Version)
			}) {
				all = append(all, version)
				break
			}
		}
	}
	return all
}

// ruleHas reports whether a list of a rule has a value, or a wildcard.
func ruleHas(rule any, list, value string) bool {
	fields, _ := rule.(map[string]any)
	values, _, _ := unstructured.NestedStringSlice(fields, list)
	return slices.Contains(values, value) || slices.Contains(values, "*")
}

// siblings puts each bad element of a list into each other list of the same object whose elements have its fields.
func (b *bench) siblings(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		if s.fix == nil {
			continue
		}
		kind, err := object.Kind(s.object)
		if err != nil {
			continue
		}
		for _, list := range listsOf(b.subject.Bad[s.bad].Defect()) {
			parent := list[:len(list)-1]
			for _, item := range b.badElements(s, list) {
				for _, other := range fields.ListsBeside(b.openAPI[kind.GroupVersion()], kind, list, item) {
					path := append(slices.Clone(parent), any(other))
					if _, named := item["name"]; named {
						item["name"] = "contract-sibling"
					}
					varied := with(s.fix, path, func(old any) (any, bool) {
						items, _ := old.([]any)
						return append(slices.Clone(items), any(runtime.DeepCopyJSON(item))), true
					})
					if varied == nil {
						continue
					}
					c := b.create(Siblings, s, varied, "with its fix, and the bad element in "+path.String())
					c.Path = path
					cases = append(cases, c)
				}
			}
		}
	}
	return cases
}

// listsOf returns the lists that have a defect in an element, each once.
func listsOf(defect []Path) []Path {
	var lists []Path
	for _, path := range defect {
		for i, step := range path {
			if _, isIndex := step.(int); !isIndex || i == 0 {
				continue
			}
			if list := path[:i]; !slices.ContainsFunc(lists, func(p Path) bool { return slices.Equal(p, list) }) {
				if _, named := list[i-1].(string); named {
					lists = append(lists, list)
				}
			}
		}
	}
	return lists
}

// badElements returns copies of the elements of a list of a bad sample that have a defect.
func (b *bench) badElements(s sample, list Path) []map[string]any {
	value, _ := at(s.object, list)
	items, _ := value.([]any)
	var found []map[string]any
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if ok && slices.ContainsFunc(b.subject.Bad[s.bad].Defect(), func(p Path) bool { return p.below(append(slices.Clone(list), any(i))) }) {
			found = append(found, runtime.DeepCopyJSON(fields))
		}
	}
	return found
}
