package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// times is how many times larger the lists and maps are made that expressions loop over.
const times = 10

// large creates a sample in which a list or map that an expression loops over has ten times as many elements.
func (b *bench) large(s sample) {
	read := b.subject.readPaths(Policy.expressions)
	for _, path := range vary.Paths(s.Object, nil) {
		if value, _ := vary.At(s.Object, path); isCollection(value) && read.loopsOver(path) {
			more := vary.With(s.Object, path, func(old any) (any, bool) { return multiplied(old, b.schema(s.kind, path)), true })
			b.derive(Large, s, more, fmt.Sprintf("with up to %d times as many elements in %s", times, path))
		}
	}
}

// loopsOver reports whether an expression reads each element of a list or map.
func (r readPaths) loopsOver(path cel.Path) bool {
	return slices.ContainsFunc(r.reads, func(one cel.Read) bool {
		return slices.ContainsFunc(one.Paths, func(p cel.Path) bool {
			return len(p) > len(path) && p[len(path)] == any(cel.Each{}) && p.Matches(path)
		})
	})
}

// multiplied returns a list or map with copies of its elements under other names. The schema of a list says which fields must differ.
func multiplied(value any, schema map[string]any) any {
	keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	switch value := value.(type) {
	case []any:
		all := slices.Clone(value)
		for n := 2; n <= times; n++ {
			for i, element := range value {
				if text, ok := element.(string); ok {
					all = append(all, fmt.Sprintf("%s-%d", text, n))
					continue
				}
				all = append(all, withKeys(withName(element, fmt.Sprintf("contract-%d-%d", n, i)), keys, n))
			}
		}
		if most, bounded := schema["maxItems"].(float64); bounded {
			all = all[:min(len(all), int(most))]
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

// withKeys changes the first key of an element of a list, unless it is the name.
func withKeys(element any, keys []any, n int) any {
	fields, _ := element.(map[string]any) // a copy
	if len(keys) == 0 || keys[0] == "name" {
		return element
	}
	name := fmt.Sprint(keys[0])
	switch value := fields[name].(type) {
	case int64:
		fields[name] = value + int64(n)
	case string:
		fields[name] = fmt.Sprintf("%s-%d", value, n)
	}
	return element
}
