package reflection

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// UserField is a field of an object that a user can set: a scalar, a pointer to one, or an
// entry of a map.
type UserField struct {
	// Path is its path in JSON, such as metadata.labels[team].
	Path string
	// Changed is true if the field had a value, and the plugin has changed or removed the value.
	Changed bool

	steps []reflect.Value // a map key, or an int: the index of a struct field or list element
	other reflect.Value   // a value that the plugin has not set
}

// ChangedFields returns the fields in which two objects of the same type differ, except names
// and namespaces. It does not look into lists whose length differs.
func ChangedFields(was, is runtime.Object) []UserField {
	before, after := reflect.ValueOf(was), reflect.ValueOf(is)
	if !before.IsValid() || !after.IsValid() || before.Type() != after.Type() {
		return nil
	}
	var found []UserField
	compareFields(before, after, UserField{}, &found)
	return slices.DeleteFunc(found, func(f UserField) bool {
		return slices.Contains([]string{"metadata.name", "metadata.generateName", "metadata.namespace", "metadata.uid"}, f.Path)
	})
}

func compareFields(was, is reflect.Value, at UserField, found *[]UserField) {
	if equalValues(was, is) {
		return
	}
	switch is.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !was.IsNil() && !is.IsNil() && was.Elem().Type() == is.Elem().Type() && !isScalar(is.Elem().Kind()) {
			compareFields(was.Elem(), is.Elem(), at, found)
			return
		}
	case reflect.Struct:
		if !allExported(is.Type()) {
			return
		}
		for i := range is.NumField() {
			field := is.Type().Field(i)
			compareFields(was.Field(i), is.Field(i), at.below(jsonName(field, at.Path), reflect.ValueOf(i)), found)
		}
		return
	case reflect.Map:
		for _, key := range keysOf(was, is) {
			before, after := was.MapIndex(key), is.MapIndex(key)
			next := at.below(fmt.Sprintf("%s[%v]", at.Path, key), key)
			switch {
			case before.IsValid() && after.IsValid():
				compareFields(before, after, next, found)
			case before.IsValid():
				next.Changed = true
				*found = append(*found, next)
			default:
				next.note(after, found)
			}
		}
		return
	case reflect.Slice:
		if was.Len() == is.Len() {
			for i := range is.Len() {
				compareFields(was.Index(i), is.Index(i), at.below(fmt.Sprintf("%s[%d]", at.Path, i), reflect.ValueOf(i)), found)
			}
		}
		return
	}
	at.Changed = !was.IsZero()
	at.note(is, found)
}

// note adds a field if it has a scalar.
func (f UserField) note(is reflect.Value, found *[]UserField) {
	value := is
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if value.IsNil() {
			if f.Changed {
				*found = append(*found, f)
			}
			return
		}
		value = value.Elem()
	}
	other, ok := otherThan(value)
	if !ok || !isScalar(value.Kind()) {
		return
	}
	f.other = other
	if is.Kind() == reflect.Pointer {
		f.other = reflect.New(other.Type())
		f.other.Elem().Set(other)
	}
	*found = append(*found, f)
}

func (f UserField) below(path string, step reflect.Value) UserField {
	return UserField{Path: path, steps: append(slices.Clone(f.steps), step)}
}

// Set sets the field of an object to a value that differs from the value of the plugin. It returns
// false if that is impossible.
func (f UserField) Set(object runtime.Object) bool {
	return f.other.IsValid() && setAt(reflect.ValueOf(object), f.steps, f.other)
}

// Kept reports whether the field of an object has the value of Set.
func (f UserField) Kept(object runtime.Object) bool {
	value := reflect.ValueOf(object)
	for _, step := range f.steps {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			if value.IsNil() {
				return false
			}
			value = value.Elem()
		}
		value = child(value, step)
		if !value.IsValid() {
			return false
		}
	}
	if value.Kind() == reflect.Interface && !value.IsNil() {
		value = value.Elem()
	}
	return value.Type() == f.other.Type() && equalValues(value, f.other)
}

func child(of, step reflect.Value) reflect.Value {
	switch of.Kind() {
	case reflect.Struct:
		return of.Field(int(step.Int()))
	case reflect.Map:
		return of.MapIndex(step)
	case reflect.Slice:
		if int(step.Int()) < of.Len() {
			return of.Index(int(step.Int()))
		}
	}
	return reflect.Value{}
}

func setAt(at reflect.Value, steps []reflect.Value, value reflect.Value) bool {
	for at.Kind() == reflect.Pointer || at.Kind() == reflect.Interface {
		if len(steps) == 0 && at.CanSet() {
			break
		}
		if at.IsNil() {
			return false
		}
		at = at.Elem()
	}
	if len(steps) == 0 {
		if !at.CanSet() || !value.Type().AssignableTo(at.Type()) {
			return false
		}
		at.Set(value)
		return true
	}
	if at.Kind() != reflect.Map {
		next := child(at, steps[0])
		return next.IsValid() && setAt(next, steps[1:], value)
	}
	if at.IsNil() {
		if !at.CanSet() {
			return false
		}
		at.Set(reflect.MakeMap(at.Type()))
	}
	entry := reflect.New(at.Type().Elem()).Elem()
	if old := at.MapIndex(steps[0]); old.IsValid() {
		entry.Set(old)
	}
	if !setAt(entry, steps[1:], value) {
		return false
	}
	at.SetMapIndex(steps[0], entry)
	return true
}

func isScalar(kind reflect.Kind) bool {
	return kind == reflect.String || kind == reflect.Bool || kind >= reflect.Int && kind <= reflect.Float64
}

// jsonName returns the path of a struct field. For an inlined field it returns the path of the
// struct. For a field without a JSON name, as in internal types, it uses the Go name with the first
// letter in lower case.
func jsonName(field reflect.StructField, parent string) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name == "" && strings.Contains(options, "inline"):
		return parent
	case name == "" && field.Anonymous && field.Name == "ObjectMeta":
		name = "metadata"
	case name == "" && field.Anonymous:
		return parent
	case name == "":
		name = strings.ToLower(field.Name[:1]) + field.Name[1:]
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}
