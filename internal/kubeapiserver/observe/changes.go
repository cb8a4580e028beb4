package observe

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// pathLimit is the largest number of paths in a record.
const pathLimit = 100

// changes returns the paths of the fields that differ between two objects, in the JSON form of
// the version of the request. A field that was added or removed counts with all of its leaves.
func changes(before, after runtime.Object, a admission.Attributes, o admission.ObjectInterfaces) ([]string, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	old, err := fields(before, a, o)
	if err != nil {
		return nil, err
	}
	changed, err := fields(after, a, o)
	if err != nil {
		return nil, err
	}
	var paths []string
	compare("", old, changed, &paths)
	return paths, nil
}

// fields returns the JSON form of an object in the version of the request. Plugins of
// kube-apiserver get built-in types in their internal version, which has no JSON form, so fields
// converts them.
func fields(object runtime.Object, a admission.Attributes, o admission.ObjectInterfaces) (map[string]any, error) {
	if u, ok := object.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	if o != nil && o.GetObjectConvertor() != nil {
		versioned, err := o.GetObjectConvertor().ConvertToVersion(object.DeepCopyObject(), a.GetKind().GroupVersion())
		if err != nil {
			return nil, err
		}
		object = versioned
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// absent is the value of a field that does not exist.
type absent struct{}

func compare(path string, old, changed any, paths *[]string) {
	oldMap, oldIsMap := asMap(old)
	newMap, newIsMap := asMap(changed)
	if oldIsMap && newIsMap && len(oldMap)+len(newMap) > 0 {
		keys := maps.Clone(oldMap)
		maps.Copy(keys, newMap)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			compare(join(path, key), field(oldMap, key), field(newMap, key), paths)
		}
		return
	}
	oldList, oldIsList := asList(old)
	newList, newIsList := asList(changed)
	if oldIsList && newIsList && len(oldList)+len(newList) > 0 {
		for i := range max(len(oldList), len(newList)) {
			compare(path+"["+strconv.Itoa(i)+"]", item(oldList, i), item(newList, i), paths)
		}
		return
	}
	if !reflect.DeepEqual(old, changed) {
		*paths = append(*paths, path)
	}
}

// asMap returns a value as a map. A value that does not exist becomes an empty map.
func asMap(value any) (map[string]any, bool) {
	if value == (any)(absent{}) {
		return map[string]any{}, true
	}
	fields, ok := value.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, ok
}

// asList returns a value as a list. A value that does not exist becomes an empty list.
func asList(value any) ([]any, bool) {
	if value == (any)(absent{}) {
		return nil, true
	}
	items, ok := value.([]any)
	return items, ok
}

func field(fields map[string]any, key string) any {
	if value, ok := fields[key]; ok {
		return value
	}
	return absent{}
}

func item(items []any, index int) any {
	if index < len(items) {
		return items[index]
	}
	return absent{}
}

// join returns the path of a field, as match.Key does.
func join(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r == '.' || r == '[' || r == ']' || r == '"' || r <= ' ' || r == utf8.RuneError
	})
	switch {
	case !plain:
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}
