package check

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// HasField reports whether objects of the type of an object can have the field at a path in JSON,
// such as metadata.labels[team] or spec.containers[].image. A path in an unstructured object, or in a
// value whose fields are not known, exists.
func HasField(object runtime.Object, path string) bool {
	if _, loose := object.(runtime.Unstructured); loose {
		return true
	}
	at := reflect.TypeOf(object)
	for rest := path; rest != ""; {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		var part string
		part, rest = cutPath(rest)
		member := reflect.Type(nil)
		switch at.Kind() {
		case reflect.Interface:
			return true
		case reflect.Struct:
			if !allExported(at) {
				return true
			}
			members := map[string]reflect.Type{}
			addMembers(at, members)
			member = members[part]
		case reflect.Map, reflect.Slice, reflect.Array:
			if strings.HasPrefix(part, "[") {
				member = at.Elem()
			}
		}
		if member == nil {
			return false
		}
		at = member
	}
	return path != ""
}

// cutPath returns the first part of a path: the name of a field, or a key or index with brackets.
func cutPath(path string) (part, rest string) {
	if strings.HasPrefix(path, "[") {
		if end := strings.Index(path, "]"); end > 0 {
			return path[:end+1], path[end+1:]
		}
		return path, ""
	}
	path = strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

// addMembers adds the fields of a struct, by their names in JSON, and the fields of inlined structs.
func addMembers(of reflect.Type, members map[string]reflect.Type) {
	for i := range of.NumField() {
		field := of.Field(i)
		switch name := jsonName(field, ""); {
		case name != "":
			members[name] = field.Type
		case field.Type.Kind() == reflect.Struct:
			addMembers(field.Type, members)
		}
	}
}
