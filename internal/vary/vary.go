// Package vary makes other objects from objects: without a value, with another one, and the smallest one of a kind. It also finds where
// objects differ.
package vary

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/internal/cel"
)

// IsIdentity reports whether a path is one of those that say which object it is, or below one. They are not varied.
func IsIdentity(path cel.Path) bool {
	return path.In([]cel.Path{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "generateName"}})
}

// Selected returns labels that a selector matches, as far as it asks for some.
func Selected(selector *metav1.LabelSelector) map[string]string {
	labels := map[string]string{}
	if selector == nil {
		return labels
	}
	maps.Copy(labels, selector.MatchLabels)
	for _, each := range selector.MatchExpressions {
		switch {
		case each.Operator == metav1.LabelSelectorOpIn && len(each.Values) > 0:
			labels[each.Key] = each.Values[0]
		case each.Operator == metav1.LabelSelectorOpExists:
			labels[each.Key] = Example
		}
	}
	return labels
}

// Paths returns the paths of all values of an object, parents before what they have.
func Paths(value any, at cel.Path) []cel.Path {
	var all []cel.Path
	visit := func(step, child any) {
		path := at.Then(step)
		if !IsIdentity(path) {
			all = append(all, path)
			all = append(all, Paths(child, path)...)
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

// At returns the value at a path.
func At(value any, path cel.Path) (any, bool) {
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

// With returns a copy of an object in which change replaced the value at a path. Change returns the new value, and
// whether there is one. Nil means that the object does not have the parent of the path.
func With(object map[string]any, path cel.Path, change func(old any) (any, bool)) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	parent, found := At(copied, path[:len(path)-1])
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
		return With(copied, path[:len(path)-1], func(any) (any, bool) { return slices.Delete(slices.Clone(parent), i, i+1), true })
	default:
		return nil
	}
	return copied
}

// Put returns a copy of an object with a value at a path, and with the maps on the way that it lacks. Nil means that it cannot have it.
func Put(object map[string]any, path cel.Path, value any) map[string]any {
	for n := 1; n < len(path) && object != nil; n++ {
		if value, _ := At(object, path[:n]); value == nil {
			object = With(object, path[:n], func(any) (any, bool) { return map[string]any{}, true })
		}
	}
	if object == nil {
		return nil
	}
	return With(object, path, func(any) (any, bool) { return value, true })
}

// Patched returns an object to which a JSON merge patch (RFC 7386) is applied, or nil if it cannot be applied.
func Patched(object, patch map[string]any) map[string]any {
	before, err := json.Marshal(object)
	change, wrong := json.Marshal(patch)
	if err != nil || wrong != nil {
		return nil
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		return nil
	}
	var out map[string]any
	if err := utiljson.Unmarshal(after, &out); err != nil { // which reads integers as such
		return nil
	}
	return out
}

// Remove is the change of With that removes a value.
func Remove(any) (any, bool) { return nil, false }

// Empty is the change of With to an empty value of the kind of a list or map; other values stay.
func Empty(old any) (any, bool) {
	switch old.(type) {
	case []any:
		return []any{}, true
	case map[string]any:
		return map[string]any{}, true
	}
	return old, true
}

// Difference returns the paths of the values that differ between an object and another one, as deep as possible.
func Difference(object, other any, at cel.Path) []cel.Path {
	first, isMap := object.(map[string]any)
	second, isOther := other.(map[string]any)
	list, isList := object.([]any)
	others, isOtherList := other.([]any)
	var all []cel.Path
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
			all = append(all, Difference(first[key], second[key], at.Then(key))...)
		}
	case isList && isOtherList && len(list) == len(others):
		for i := range list {
			all = append(all, Difference(list[i], others[i], at.Then(i))...)
		}
	default:
		all = append(all, at)
	}
	return all
}

// Differences returns the paths at which two objects differ, apart from what an API server sets: system metadata and
// the status.
func Differences(object, other map[string]any) []cel.Path {
	return Difference(OfClient(object), OfClient(other), nil)
}

// OfClient returns a copy of an object in a response without what the API server sets.
func OfClient(object map[string]any) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	metadata, _ := copied["metadata"].(map[string]any)
	for _, set := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, set)
	}
	delete(copied, "status")
	return copied
}

// tokenVolume matches the name that an API server chooses for the volume of a Pod's token.
var tokenVolume = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)

// WithoutTokens returns the JSON of an object in which the volume of a Pod's token has always the same name.
func WithoutTokens(text []byte) []byte {
	return tokenVolume.ReplaceAll(text, []byte("kube-api-access"))
}

// Below returns the paths that are at or below another one.
func Below(all []cel.Path, path cel.Path) []cel.Path {
	return slices.DeleteFunc(slices.Clone(all), func(p cel.Path) bool { return !p.Below(path) })
}

// Defect returns the paths at which two objects differ, apart from what an API server sets and from what says which
// object it is.
func Defect(object, other map[string]any) []cel.Path {
	return slices.DeleteFunc(Differences(object, other), IsIdentity)
}
