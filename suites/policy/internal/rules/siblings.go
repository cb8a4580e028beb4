package rules

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
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
		document, err := vary.Document(ctx, read, version)
		if err != nil {
			return err
		}
		b.openAPI[version] = document
	}
	return nil
}

// matched returns the served groups and versions of what the policies match.
func (b *bench) matched() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, p := range b.subject.List() {
		for _, kind := range b.kindsOf(p) {
			if version := kind.GroupVersion(); version.Version != "*" && !slices.Contains(all, version) {
				all = append(all, version)
			}
		}
	}
	return all
}

// siblings puts each bad element of a list into each other list of the same object whose elements have its fields.
func (b *bench) siblings(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		for _, item := range b.badElements(s) {
			for _, path := range b.listsBeside(s, item) {
				varied, control := appended(s.fix, path, item.bad), appended(s.fix, path, item.good)
				if varied == nil || item.good == nil {
					continue
				}
				c := b.create(Siblings, s, varied, "with its fix, and the bad element in "+path.String())
				c.Path = path
				c.controls = b.controlsOf(s, item.path)
				c.Control = b.create(Controls, s, control, "with its fix, and the good element in "+path.String())
				cases = append(cases, c.Control)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// appended returns a copy of an object with one more element in a list, under another name.
func appended(object map[string]any, list cel.Path, element any) map[string]any {
	return vary.With(object, list, func(old any) (any, bool) {
		items, _ := old.([]any)
		return append(slices.Clone(items), withName(element, movedName)), true
	})
}

// listsBeside returns the other lists in the object that has the list of an element, whose elements can have all fields of the
// element, and of what the fix has instead.
func (b *bench) listsBeside(s sample, item badElement) []cel.Path {
	kind, err := object.Kind(s.object)
	if err != nil {
		return nil
	}
	both := maps.Clone(item.bad)
	if good, ok := item.good.(map[string]any); ok {
		maps.Copy(both, good)
	}
	var found []cel.Path
	for _, name := range kinds.ListsBeside(b.openAPI[kind.GroupVersion()], kind, item.list, both) {
		found = append(found, append(slices.Clone(item.list[:len(item.list)-1]), any(name)))
	}
	return found
}

// listsOf returns the lists that have a defect in an element, each once.
func listsOf(defect []cel.Path) []cel.Path {
	var lists []cel.Path
	for _, path := range defect {
		for i, step := range path {
			if _, isIndex := step.(int); !isIndex || i == 0 {
				continue
			}
			if list := path[:i]; !slices.ContainsFunc(lists, func(p cel.Path) bool { return slices.Equal(p, list) }) {
				if _, named := list[i-1].(string); named {
					lists = append(lists, list)
				}
			}
		}
	}
	return lists
}

// badElement is an element of a list that has a part of the defect of a bad sample.
type badElement struct {
	list, path cel.Path
	bad        map[string]any
	good       any // what the fix has instead, or nil
	// values are where the element differs from the good one.
	values []cel.Path
	// byName is true if a part of the defect is the name of the element.
	byName bool
}

// badElements returns copies of the elements of lists that have a part of the defect of a bad sample. Moved without the rest of
// a defect, an element can be good: Case.Alone says whether it is.
func (b *bench) badElements(s sample) []badElement {
	var all []badElement
	for _, list := range listsOf(s.defect) {
		value, _ := vary.At(s.object, list)
		items, _ := value.([]any)
		for i, item := range items {
			found := badElement{list: list, path: list.Then(i)}
			fields, ok := item.(map[string]any)
			if !ok || len(vary.Below(s.defect, found.path)) == 0 {
				continue
			}
			good, _ := vary.At(s.fix, found.path)
			found.bad, found.good = runtime.DeepCopyJSON(fields), runtime.DeepCopyJSONValue(good)
			found.values = vary.Below(b.subject.Bad[s.bad].Defect(), found.path)
			found.byName = slices.ContainsFunc(s.defect, func(p cel.Path) bool { return slices.Equal(p, found.path.Then("name")) })
			all = append(all, found)
		}
	}
	return all
}

// withName returns a copy of an element with a name, if it has one.
func withName(element any, name string) any {
	copied := runtime.DeepCopyJSONValue(element)
	if fields, ok := copied.(map[string]any); ok && named(fields) {
		fields["name"] = name
	}
	return copied
}
