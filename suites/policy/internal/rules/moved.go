package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// movedName is the name of a bad element in another position or list.
const movedName = "contract-moved"

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
// a defect, an element can be good: elementNeeds says whether it is.
func badElements(s sample) []badElement {
	var all []badElement
	known := map[string]bool{}
	for _, path := range s.defect {
		for i, step := range path {
			_, isIndex := step.(int)
			if at := path[:i+1]; i > 0 && isIndex && !known[at.String()] {
				known[at.String()] = true
				fields, ok := valueAt[map[string]any](s.Object, at)
				if _, named := path[i-1].(string); !named || !ok {
					continue
				}
				good, _ := vary.At(s.fix, at)
				all = append(all, badElement{
					list: path[:i], path: at, bad: runtime.DeepCopyJSON(fields), good: runtime.DeepCopyJSONValue(good), values: vary.Below(s.whole, at),
					byName: slices.ContainsFunc(s.defect, func(p cel.Path) bool { return slices.Equal(p, at.Then("name")) }),
				})
			}
		}
	}
	return all
}

// moved puts each bad element of a list alone, first, last and between the elements of the fix, and into each other list of the same
// object whose elements have its fields.
func (b *bench) moved(s sample) {
	for _, item := range badElements(s) {
		needs := b.elementNeeds(s, item)
		if !named(item.bad) || !item.byName && !referred(s.Object, item.list, item.bad["name"]) {
			b.positions(s, item, needs) // otherwise the policy may ask for an element of a name, or nothing refers to it under another
		}
		for _, path := range b.listsBeside(s, item) {
			control := b.derive(Controls, s, appended(s.fix, path, item.good), "with its fix, and the good element in "+path.String())
			if control == nil {
				continue
			}
			c := b.derive(Siblings, s, appended(s.fix, path, item.bad), "with its fix, and the bad element in "+path.String())
			c.needs = append(slices.Clone(needs), accepted(control))
		}
	}
}

// elementNeeds adds the requests that say whether a request that moves a bad element says anything: under the other name in its own
// place the element is refused, and the fix without an element is not.
func (b *bench) elementNeeds(s sample, item badElement) []need {
	var needs []need
	renamed := vary.With(s.fix, item.path, func(any) (any, bool) { return withName(item.bad, movedName), true })
	if c := b.derive(Controls, s, renamed, fmt.Sprintf("with its fix, and of the bad object only %s, under another name", item.path)); c != nil {
		needs = append(needs, refused(c))
	}
	if c := b.derive(Controls, s, vary.With(s.fix, item.path, vary.Remove), fmt.Sprintf("with its fix without %s", item.path)); c != nil {
		needs = append(needs, notAsked(c))
	}
	return needs
}

// positions creates the fix with the bad element in each position of its list.
func (b *bench) positions(s sample, item badElement, needs []need) {
	bad := withName(item.bad, movedName)
	good, _ := valueAt[[]any](s.fix, item.list)
	orders := map[string][]any{"alone": {bad}, "first": slices.Concat([]any{bad}, good), "last": slices.Concat(good, []any{bad})}
	if len(good) > 0 {
		orders["in the middle"] = slices.Concat(good, []any{bad, withName(good[0], "contract-good")})
	}
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		varied := vary.With(s.fix, item.list, func(any) (any, bool) { return orders[order], true })
		if c := b.derive(Elements, s, varied, fmt.Sprintf("with its fix, and the bad element of %s %s", item.list, order)); c != nil {
			c.needs = needs
		}
	}
}

func named(item map[string]any) bool { _, ok := item["name"].(string); return ok }

// withName returns a copy of an element with a name, if it has one.
func withName(element any, name string) any {
	copied := runtime.DeepCopyJSONValue(element)
	if fields, ok := copied.(map[string]any); ok && named(fields) {
		fields["name"] = name
	}
	return copied
}

// appended returns a copy of an object with one more element in a list, under another name, or nil without an element.
func appended(object map[string]any, list cel.Path, element any) map[string]any {
	if element == nil {
		return nil
	}
	return vary.With(object, list, func(old any) (any, bool) {
		items, _ := old.([]any)
		return append(slices.Clone(items), withName(element, movedName)), true
	})
}

// listsBeside returns the other lists in the object that has the list of an element, whose elements can have all fields of the
// element, and of what the fix has instead.
func (b *bench) listsBeside(s sample, item badElement) []cel.Path {
	both := maps.Clone(item.bad)
	if good, ok := item.good.(map[string]any); ok {
		maps.Copy(both, good)
	}
	var found []cel.Path
	for _, name := range kinds.ListsBeside(b.openAPI[s.kind.GroupVersion()], s.kind, item.list, both) {
		found = append(found, item.list[:len(item.list)-1].Then(name))
	}
	return found
}

// referred reports whether a field for a name, outside of a list and of metadata, has the name of an element of the list.
func referred(object map[string]any, list cel.Path, name any) bool {
	return slices.ContainsFunc(vary.Paths(object, nil), func(path cel.Path) bool {
		field, _ := path[len(path)-1].(string)
		value, _ := vary.At(object, path)
		return value == name && strings.HasSuffix(strings.ToLower(field), "name") && !path.Below(list) && path[0] != "metadata"
	})
}
