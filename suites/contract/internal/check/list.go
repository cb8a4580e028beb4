package check

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// List is the path of a list in an object.
type List struct {
	// Path is its path in JSON, such as spec.containers.
	Path string
	// Fields has the names of the Go fields on the path.
	Fields []string
}

// ListsOfStructs returns the lists of structs in an object that have elements. It does not look into lists, maps
// and interfaces.
func ListsOfStructs(object runtime.Object) []List {
	var found []List
	var walk func(reflect.Value, List)
	walk = func(value reflect.Value, at List) {
		switch value.Kind() {
		case reflect.Pointer:
			if !value.IsNil() {
				walk(value.Elem(), at)
			}
		case reflect.Slice:
			if value.Len() > 0 && value.Type().Elem().Kind() == reflect.Struct {
				found = append(found, at)
			}
		case reflect.Struct:
			for i := range value.NumField() {
				if field := value.Type().Field(i); field.IsExported() {
					walk(value.Field(i), List{jsonName(field, at.Path), append(slices.Clone(at.Fields), field.Name)})
				}
			}
		}
	}
	walk(reflect.ValueOf(object), List{})
	return found
}

// In returns the list in an object. It returns an invalid value if the object does not have it.
func (l List) In(object runtime.Object) reflect.Value {
	value, _ := Field(object, l.Fields...)
	return value
}

// Field returns a field of an object, such as Spec.Containers. It returns false if the object does not have it.
func Field(object runtime.Object, names ...string) (reflect.Value, bool) {
	value := reflect.ValueOf(object)
	for _, name := range names {
		for value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return reflect.Value{}, false
		}
		if value = value.FieldByName(name); !value.IsValid() {
			return value, false
		}
	}
	return value, true
}
