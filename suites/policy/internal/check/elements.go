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

// movedName is the name of a bad element in another position or list.
const movedName = "contract-moved"

// setControls sets Absent and Same of a request that moves the bad element of a list.
func (b *bench) setControls(c *Case, s sample, list Path) {
	key := s.name + list.String()
	c.Absent, c.Same = b.absent[key], b.same[key]
}

// elementControls returns the requests for setControls.
func (b *bench) elementControls(all []sample) []*Case {
	b.absent, b.same = map[string]*Case{}, map[string]*Case{}
	var cases []*Case
	for _, s := range all {
		if s.fix == nil {
			continue
		}
		for _, list := range listsOf(b.subject.Bad[s.bad].Defect()) {
			for _, item := range b.badElements(s, list) {
				path, key := append(slices.Clone(list), any(item.index)), s.name+list.String()
				if without := with(s.fix, path, remove); without != nil {
					b.absent[key] = b.create(Controls, s, without, fmt.Sprintf("with its fix without %s", path))
					cases = append(cases, b.absent[key])
				}
				if named(item.bad) {
					renamed := with(s.object, path, func(any) (any, bool) { return withName(item.bad, movedName), true })
					b.same[key] = b.create(Controls, s, renamed, fmt.Sprintf("with another name of %s", path))
					cases = append(cases, b.same[key])
				}
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
	bad := withName(item, movedName)
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
		b.setControls(c, s, list)
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
