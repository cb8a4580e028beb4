package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// elements puts each bad element of a list alone, first, last and between the elements of the fix.
func (b *bench) elements(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		for _, item := range b.badElements(s) {
			if named(item.bad) && (item.byName || referred(s.object, item.list, item.bad["name"])) {
				continue // the policy may ask for an element of a name; under another name, nothing refers to it
			}
			cases = append(cases, b.positions(s, item)...)
		}
	}
	return cases
}

// movedName is the name of a bad element in another position or list.
const movedName = "contract-moved"

// alone creates the fix with only the values of the bad object at some paths. It returns nil if that is the fix or the bad object.
func (b *bench) alone(s sample, values []cel.Path, where string) *Case {
	object := withValues(s.fix, s.object, values)
	if object == nil || len(vary.Defect(object, s.fix)) == 0 || len(vary.Defect(object, s.object)) == 0 {
		return nil
	}
	return b.create(Controls, s, object, "with its fix, and of the bad object only "+where)
}

// controlsOf returns the controls of a request that moves the bad element at a path.
func (b *bench) controlsOf(s sample, element cel.Path) controls {
	return b.controls[s.name+element.String()]
}

// elementControls returns the requests for controlsOf.
func (b *bench) elementControls(all []sample) []*Case {
	b.controls = map[string]controls{}
	var cases []*Case
	for _, s := range all {
		for _, item := range b.badElements(s) {
			found := controls{Alone: b.alone(s, item.values, item.path.String())}
			if without := vary.With(s.fix, item.path, vary.Remove); without != nil {
				found.Absent = b.create(Controls, s, without, fmt.Sprintf("with its fix without %s", item.path))
			}
			if named(item.bad) {
				renamed := vary.With(s.fix, item.path, func(any) (any, bool) { return withName(item.bad, movedName), true })
				found.Same = b.create(Controls, s, renamed, fmt.Sprintf("with its fix, and of the bad object only %s, under another name", item.path))
			}
			for _, c := range []*Case{found.Alone, found.Absent, found.Same} {
				if c != nil {
					cases = append(cases, c)
				}
			}
			b.controls[s.name+item.path.String()] = found
		}
	}
	return cases
}

func named(item map[string]any) bool { _, ok := item["name"].(string); return ok }

// positions returns the creations of the fix with the bad element in each position of its list.
func (b *bench) positions(s sample, item badElement) []*Case {
	bad := withName(item.bad, movedName)
	value, _ := vary.At(s.fix, item.list)
	good, _ := value.([]any)
	orders := map[string][]any{"alone": {bad}, "first": slices.Concat([]any{bad}, good), "last": slices.Concat(good, []any{bad})}
	if len(good) > 0 {
		orders["in the middle"] = slices.Concat(good, []any{bad, withName(good[0], "contract-good")})
	}
	var cases []*Case
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		varied := vary.With(s.fix, item.list, func(any) (any, bool) { return orders[order], true })
		if varied == nil {
			continue
		}
		c := b.create(Elements, s, varied, fmt.Sprintf("with its fix, and the bad element of %s %s", item.list, order))
		c.Path = item.list
		c.controls = b.controlsOf(s, item.path)
		cases = append(cases, c)
	}
	return cases
}

// referred reports whether a field for a name, outside of a list and of metadata, has the name of an element of the list.
func referred(object map[string]any, list cel.Path, name any) bool {
	return slices.ContainsFunc(vary.Paths(object, nil), func(path cel.Path) bool {
		field, _ := path[len(path)-1].(string)
		value, _ := vary.At(object, path)
		return value == name && strings.HasSuffix(strings.ToLower(field), "name") && !path.Below(list) && path[0] != "metadata"
	})
}
