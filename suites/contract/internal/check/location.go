package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Location says where a value is in an object: a field, an entry of a map or an element of a list.
type Location struct {
	// Path is its path in JSON, such as spec.containers[0].env. Name is the last name of the path, in Go if it has one.
	Path, Name string
	// Optional means that clients can leave the field out.
	Optional bool

	steps []reflect.Value // as of UserField
}

// Locations calls visit for each value of an object that is set, in order: first a value, then what it contains. Pointers and
// interfaces are followed. What the API server sets in the metadata is left out.
func Locations(object runtime.Object, visit func(Location, reflect.Value)) {
	at, value := Location{}, reflect.ValueOf(object)
	if loose, ok := object.(*unstructured.Unstructured); ok {
		at, value = at.below("", "", reflect.ValueOf(0)), reflect.ValueOf(loose.Object)
	}
	at.walk(value, visit)
}

func (p Location) walk(value reflect.Value, visit func(Location, reflect.Value)) {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	server := []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.generateName", "metadata.uid", "metadata.resourceVersion", "metadata.managedFields"}
	if !value.IsValid() || value.IsZero() || slices.Contains(server, p.Path) {
		return
	}
	if p.Path != "" {
		visit(p, value)
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := 0; allExported(value.Type()) && i < value.NumField(); i++ {
			field := value.Type().Field(i)
			next := p.below(jsonName(field, p.Path), field.Name, reflect.ValueOf(i))
			tag := field.Tag.Get("json")
			next.Optional = tag == "" || strings.Contains(tag, "omitempty")
			next.walk(value.Field(i), visit)
		}
	case reflect.Map:
		for _, key := range keysOf(value) {
			path := fmt.Sprintf("%s[%v]", p.Path, key)
			if value.Type().Elem().Kind() == reflect.Interface {
				path = strings.TrimPrefix(fmt.Sprintf("%s.%v", p.Path, key), ".")
			}
			p.below(path, fmt.Sprint(key), key).walk(value.MapIndex(key), visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			p.below(fmt.Sprintf("%s[%d]", p.Path, i), p.Name, reflect.ValueOf(i)).walk(value.Index(i), visit)
		}
	}
}

func (p Location) below(path, name string, step reflect.Value) Location {
	return Location{Path: path, Name: name, steps: append(slices.Clone(p.steps), step)}
}

// Sibling returns the location of another field of the same struct. It returns false if there is none.
func (p Location) Sibling(object runtime.Object, name string) (Location, bool) {
	last := len(p.steps) - 1
	if parent := valueAt(reflect.ValueOf(object), p.steps[:last]); parent.Kind() == reflect.Struct {
		if field, ok := parent.Type().FieldByName(name); ok {
			return Location{Name: name, steps: append(slices.Clone(p.steps[:last]), reflect.ValueOf(field.Index[0]))}, true
		}
	}
	return p, false
}

// In returns the value in an object. It returns an invalid value if the object does not have it.
func (p Location) In(object runtime.Object) reflect.Value {
	return valueAt(reflect.ValueOf(object), p.steps)
}

// With returns a copy of an object with another value there. It returns nil if that is impossible.
func (p Location) With(object runtime.Object, value reflect.Value) runtime.Object {
	edited := Copy(object)
	if !setAt(reflect.ValueOf(edited), p.steps, value) {
		return nil
	}
	return Copy(edited) // values are used again
}

// valueAt returns the value below a value. It follows pointers and interfaces.
func valueAt(value reflect.Value, steps []reflect.Value) reflect.Value {
	for n := 0; ; n++ {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		if n == len(steps) || !value.IsValid() {
			return value
		}
		value = child(value, steps[n])
	}
}

// Without returns a copy of an object without the value. It returns nil if it is an element of a list.
func (p Location) Without(object runtime.Object) runtime.Object {
	edited, last := Copy(object), len(p.steps)-1
	switch parent := valueAt(reflect.ValueOf(edited), p.steps[:last]); parent.Kind() {
	case reflect.Struct:
		parent.Field(int(p.steps[last].Int())).SetZero()
	case reflect.Map:
		parent.SetMapIndex(p.steps[last], reflect.Value{})
	default:
		return nil
	}
	return edited
}

// Altered returns a copy of the value in an object with other content.
func (p Location) Altered(object runtime.Object) reflect.Value {
	value := p.In(Copy(object))
	altered := reflect.New(value.Type())
	altered.Elem().Set(value)
	Overwrite(SpareNone, altered.Interface())
	return altered.Elem()
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
