package check

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// HasField reports whether objects of the type of an object can have the field at a path in JSON,
// such as metadata.labels[team] or spec.containers[].image. A path in an unstructured object, or in a
// value whose fields are not known, exists. If there is no such field, similar has paths with the
// fields that are where the path ends to exist.
func HasField(object runtime.Object, path string) (ok bool, similar []string) {
	if _, loose := object.(runtime.Unstructured); loose {
		return true, nil
	}
	at, before := reflect.TypeOf(object), ""
	for rest := path; rest != ""; {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		var part string
		part, rest = cutPath(rest)
		member := reflect.Type(nil)
		switch at.Kind() {
		case reflect.Interface:
			return true, nil
		case reflect.Struct:
			if !allExported(at) {
				return true, nil
			}
			members := map[string]reflect.Type{}
			addMembers(at, members)
			member = members[part]
			for name := range members {
				similar = append(similar, below(before, name)+rest)
			}
		case reflect.Map, reflect.Slice, reflect.Array:
			if strings.HasPrefix(part, "[") {
				member = at.Elem()
			} else if similar = []string{before + "[]." + part + rest}; at.Kind() == reflect.Map {
				similar = []string{before + "[" + part + "]" + rest}
			}
		}
		if member == nil {
			return false, similar
		}
		at, before, similar = member, below(before, part), nil
	}
	return path != "", nil
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

// below appends a part to a path.
func below(path, part string) string {
	if path == "" || strings.HasPrefix(part, "[") {
		return path + part
	}
	return path + "." + part
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
