package check

import (
	"fmt"
	"maps"
	"slices"
)

// times is how many times larger the lists and maps are made that expressions loop over.
const times = 10

// large creates samples in which each list and map that an expression loops over has ten times as many elements.
func (b *bench) large(all []sample) []*Case {
	var cases []*Case
	read := b.subject.readPaths(Policy.expressions)
	for _, s := range all {
		for _, path := range paths(s.object, nil) {
			if value, _ := at(s.object, path); !isCollection(value) || !read.loopsOver(path) {
				continue
			}
			c := b.create(Large, s, with(s.object, path, func(old any) (any, bool) { return multiplied(old), true }), fmt.Sprintf("with %d times as many elements in %s", times, path))
			c.Path = path
			cases = append(cases, c)
		}
	}
	return cases
}

// loopsOver reports whether an expression reads each element of a list or map.
func (r readPaths) loopsOver(path Path) bool {
	return slices.ContainsFunc(r.reads, func(one read) bool {
		return slices.ContainsFunc(one.paths, func(p Path) bool {
			return len(p) > len(path) && p[len(path)] == any(each{}) && matches(p, path)
		})
	})
}

// multiplied returns a list or map with copies of its elements under other names.
func multiplied(value any) any {
	switch value := value.(type) {
	case []any:
		all := slices.Clone(value)
		for n := 2; n <= times; n++ {
			for i, element := range value {
				if text, ok := element.(string); ok {
					all = append(all, fmt.Sprintf("%s-%d", text, n))
					continue
				}
				all = append(all, withName(element, fmt.Sprintf("contract-%d-%d", n, i)))
			}
		}
		return all
	case map[string]any:
		all := maps.Clone(value)
		for n := 2; n <= times; n++ {
			for key, element := range value {
				all[fmt.Sprintf("%s-%d", key, n)] = element
			}
		}
		return all
	}
	return value
}
