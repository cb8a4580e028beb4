package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// elements puts each bad element of a list alone, first, last and between the elements of the fix.
func (b *bench) elements(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		if s.fix == nil {
			continue
		}
		for _, list := range listsOf(b.subject.Bad[s.bad].Defect()) {
			value, _ := at(s.fix, list)
			good, _ := value.([]any)
			for _, item := range b.badElements(s, list) {
				if named(item.bad) && (b.namedByDefect(s, list) || referred(s.object, list, item.bad["name"])) {
					continue // the policy may ask for an element of a name; under another name, nothing refers to it
				}
				cases = append(cases, b.positions(s, list, good, item.bad)...)
			}
		}
	}
	return cases
}

func named(item map[string]any) bool { _, ok := item["name"].(string); return ok }

// namedByDefect reports whether a defect is the name of an element of a list.
func (b *bench) namedByDefect(s sample, list Path) bool {
	return slices.ContainsFunc(b.subject.Bad[s.bad].Defect(), func(p Path) bool {
		return p.below(list) && len(p) == len(list)+2 && p[len(p)-1] == "name"
	})
}

// positions returns the creations of the fix with the bad element in a list of it.
func (b *bench) positions(s sample, list Path, good []any, item map[string]any) []*Case {
	bad := withName(item, "contract-bad")
	orders := map[string][]any{"alone": {bad}, "first": slices.Concat([]any{bad}, good), "last": slices.Concat(good, []any{bad})}
	if len(good) > 0 {
		orders["in the middle"] = slices.Concat(good, []any{bad, withName(good[0], "contract-good")})
	}
	var cases []*Case
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		varied := with(s.fix, list, func(any) (any, bool) { return orders[order], true })
		if varied == nil {
			continue
		}
		c := b.create(Elements, s, varied, fmt.Sprintf("with its fix, and the bad element of %s %s", list, order))
		c.Path = list
		cases = append(cases, c)
	}
	return cases
}

// referred reports whether a field for a name, outside of a list and of metadata, has the name of an element of the list.
func referred(object map[string]any, list Path, name any) bool {
	return slices.ContainsFunc(paths(object, nil), func(path Path) bool {
		field, _ := path[len(path)-1].(string)
		value, _ := at(object, path)
		return value == name && strings.HasSuffix(strings.ToLower(field), "name") && !path.below(list) && path[0] != "metadata"
	})
}
