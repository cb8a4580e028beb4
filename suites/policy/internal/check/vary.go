package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Path is where a value is in an object: names of fields and keys, and indexes of lists.
type Path []any

// String returns "spec.containers[0].image".
func (p Path) String() string {
	var text strings.Builder
	for _, step := range p {
		if name, ok := step.(string); ok && strings.ContainsAny(name, "./") {
			fmt.Fprintf(&text, "[%q]", name)
		} else if ok {
			text.WriteString("." + name)
		} else {
			fmt.Fprintf(&text, "[%v]", step)
		}
	}
	return strings.TrimPrefix(text.String(), ".")
}

// below reports whether a path is at or below another one.
func (p Path) below(other Path) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

// In reports whether a path is at or below one of others.
func (p Path) In(others []Path) bool { return slices.ContainsFunc(others, p.below) }

// identity are the paths that say which object it is; they are not varied.
func identity() []Path {
	return []Path{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "generateName"}}
}

// paths returns the paths of all values of an object, parents before what they have.
func paths(value any, at Path) []Path {
	var all []Path
	visit := func(step, child any) {
		path := append(slices.Clone(at), step)
		if !slices.ContainsFunc(identity(), func(p Path) bool { return slices.Equal(p, path) }) {
			all = append(all, path)
			all = append(all, paths(child, path)...)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			visit(key, value[key])
		}
	case []any:
		for i, item := range value {
			visit(i, item)
		}
	}
	return all
}

// at returns the value at a path.
func at(value any, path Path) (any, bool) {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			name, _ := step.(string)
			child, found := parent[name]
			if value = child; !found {
				return nil, false
			}
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(parent) {
				return nil, false
			}
			value = parent[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// with returns a copy of an object in which change replaced the value at a path. Change returns the new value, and
// whether there is one. Nil means that the object does not have the parent of the path.
func with(object map[string]any, path Path, change func(old any) (any, bool)) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	parent, found := at(copied, path[:len(path)-1])
	if !found {
		return nil
	}
	last := path[len(path)-1]
	switch parent := parent.(type) {
	case map[string]any:
		name, _ := last.(string)
		if value, keep := change(parent[name]); keep {
			parent[name] = value
		} else {
			delete(parent, name)
		}
	case []any:
		i, ok := last.(int)
		if !ok || i >= len(parent) {
			return nil
		}
		value, keep := change(parent[i])
		if keep {
			parent[i] = value
			return copied
		}
		return with(copied, path[:len(path)-1], func(any) (any, bool) { return slices.Delete(slices.Clone(parent), i, i+1), true })
	default:
		return nil
	}
	return copied
}

func remove(any) (any, bool) { return nil, false }

// empty is an empty value of the kind of a list or map; other values stay.
func empty(old any) (any, bool) {
	switch old.(type) {
	case []any:
		return []any{}, true
	case map[string]any:
		return map[string]any{}, true
	}
	return old, true
}

// difference returns the paths of the values that differ between an object and another one, as deep as possible.
func difference(object, other any, at Path) []Path {
	first, isMap := object.(map[string]any)
	second, isOther := other.(map[string]any)
	list, isList := object.([]any)
	others, isOtherList := other.([]any)
	var all []Path
	switch {
	case equality.Semantic.DeepEqual(object, other):
	case isMap && isOther:
		keys := slices.Sorted(maps.Keys(first))
		for _, key := range slices.Sorted(maps.Keys(second)) {
			if _, both := first[key]; !both {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			all = append(all, difference(first[key], second[key], append(slices.Clone(at), key))...)
		}
	case isList && isOtherList && len(list) == len(others):
		for i := range list {
			all = append(all, difference(list[i], others[i], append(slices.Clone(at), i))...)
		}
	default:
		all = append(all, at)
	}
	return all
}

// Differences returns the paths at which two objects differ, apart from what an API server sets: system metadata and
// the status.
func Differences(object, other map[string]any) []Path {
	return difference(ofClient(object), ofClient(other), nil)
}

// ofClient returns a copy of an object in a response without what the API server sets.
func ofClient(object map[string]any) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	metadata, _ := copied["metadata"].(map[string]any)
	for _, set := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, set)
	}
	delete(copied, "status")
	return copied
}

// Defect returns where bad differs from its fix, apart from what says which object it is.
func (b Bad) Defect() []Path {
	if b.Fix == nil {
		return nil
	}
	return defectOf(b.Object, b.Fix)
}

// below returns the paths that are at or below another one.
func below(all []Path, path Path) []Path {
	return slices.DeleteFunc(slices.Clone(all), func(p Path) bool { return !p.below(path) })
}

// defectOf returns the paths at which two objects differ, apart from what an API server sets and from what says which
// object it is.
func defectOf(object, other map[string]any) []Path {
	return slices.DeleteFunc(Differences(object, other), func(path Path) bool {
		return slices.ContainsFunc(identity(), func(p Path) bool { return path.below(p) })
	})
}
