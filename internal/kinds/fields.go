package kinds

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Missing is a field of a path that does not exist.
type Missing struct {
	// Index is the index of the field in the path.
	Index int
	// Names are the fields that exist there, sorted. None for a value that has no fields.
	Names []string
}

// MissingInKind returns the first field of a path that one of Kubernetes' own kinds does not have, or nil. Known is
// false if the kind is not known.
func MissingInKind(kind schema.GroupVersionKind, path []any) (missing *Missing, known bool) {
	if kind.Group == metav1.GroupName {
		kind.Group = "" // CreateOptions, ...
	}
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, false
	}
	return MissingInType(reflect.TypeOf(object), path), true
}

// MissingInType returns the first field of a path that values of a type do not have in JSON, or nil.
func MissingInType(typ reflect.Type, path []any) *Missing {
	for i, step := range path {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		name, isName := step.(string)
		switch {
		case isFree(typ):
			return nil
		case typ.Kind() == reflect.Map:
			typ = typ.Elem()
		case typ.Kind() == reflect.Slice && !isName:
			typ = typ.Elem()
		case !isName:
			return nil // a list never matches a value that is none
		default:
			all := members(typ)
			next, ok := all[name]
			if !ok {
				return &Missing{i, slices.Sorted(maps.Keys(all))}
			}
			typ = next
		}
	}
	return nil
}

// isFree reports whether a type does not say which fields its values have: an interface, bytes, or a type
// that encodes itself.
func isFree(typ reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return typ.Kind() == reflect.Interface || typ == reflect.TypeFor[[]byte]() || typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler)
}

// members returns the fields of a struct by their names in JSON, and none for another type.
func members(typ reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	if typ.Kind() != reflect.Struct {
		return all
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (strings.Contains(options, "inline") || field.Anonymous):
			maps.Copy(all, members(field.Type))
		case name != "":
			all[name] = field.Type
		}
	}
	return all
}
