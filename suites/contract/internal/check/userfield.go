package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// UserField is a field of an object that a user can set: a scalar, a pointer to one, an entry of a
// map, or an element of a list.
type UserField struct {
	// Path is its path in JSON, such as metadata.labels[team]. The path of an element of a list that became
	// longer ends with the index of the element.
	Path string
	// Changed is true if the field had a value, and the plugin has changed or removed the value.
	Changed bool

	steps   []reflect.Value // a map key, or an int: the index of a struct field or list element
	other   reflect.Value   // a value that the plugin has not set
	element reflect.Value   // for a list: the element of other that the plugin has not added
}

// ChangedFields returns the fields in which two objects of the same type differ, except names
// and namespaces. For a map with more keys, and for a list with more elements, it also returns a key
// or an element that neither object has.
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
				at.noteKey(after, found)
			}
		}
		return
	case reflect.Slice:
		if was.Len() == is.Len() {
			for i := range is.Len() {
				compareFields(was.Index(i), is.Index(i), at.below(fmt.Sprintf("%s[%d]", at.Path, i), reflect.ValueOf(i)), found)
			}
		} else {
			at.noteElement(was, is, found)
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

// noteKey adds a key of a map to which the plugin has added a value with another key.
func (f UserField) noteKey(value reflect.Value, found *[]UserField) {
	next := f.below(fmt.Sprintf("%s[%s]", f.Path, ForeignMark), reflect.ValueOf(ForeignMark))
	if !slices.ContainsFunc(*found, func(other UserField) bool { return other.Path == next.Path }) {
		next.note(value, found)
	}
}

// noteElement adds an element of a list to which the plugin has added another one. It adds each element that
// the list has lost.
func (f UserField) noteElement(was, is reflect.Value, found *[]UserField) {
	for i := range was.Len() {
		if !hasElement(is, was.Index(i)) {
			*found = append(*found, UserField{Path: fmt.Sprintf("%s[%d]", f.Path, i), Changed: true})
			return
		}
	}
	for i := range is.Len() {
		if element, ok := otherElement(is.Index(i)); ok && !hasElement(was, is.Index(i)) {
			f.Path = fmt.Sprintf("%s[%d]", f.Path, was.Len())
			f.element = element
			f.other = reflect.Append(reflect.AppendSlice(reflect.MakeSlice(is.Type(), 0, was.Len()+1), was), element)
			*found = append(*found, f)
			return
		}
	}
}

// otherElement returns an element of a list with another name, key or string.
func otherElement(like reflect.Value) (reflect.Value, bool) {
	other := reflect.New(like.Type()).Elem()
	other.Set(like)
	if like.Kind() != reflect.Struct {
		value, _ := otherThan(like)
		return value, like.Kind() == reflect.String
	}
	for _, name := range []string{"Name", "Key"} {
		if field := other.FieldByName(name); field.IsValid() && field.Kind() == reflect.String {
			field.SetString(field.String() + "-user")
			return other, true
		}
	}
	return other, false
}

// hasElement reports whether a list has an element with all values of the wanted one. The element may have more
// values, such as defaults.
func hasElement(list, wanted reflect.Value) bool {
	for i := range list.Len() {
		if hasValues(list.Index(i), wanted) {
			return true
		}
	}
	return false
}

func hasValues(value, wanted reflect.Value) bool {
	if wanted.Kind() != reflect.Struct || !allExported(wanted.Type()) {
		return wanted.IsZero() || equalValues(value, wanted)
	}
	for i := range wanted.NumField() {
		if !hasValues(value.Field(i), wanted.Field(i)) {
			return false
		}
	}
	return true
}

func (f UserField) below(path string, step reflect.Value) UserField {
	return UserField{Path: path, steps: append(slices.Clone(f.steps), step)}
}

// Set sets the field of an object to a value that differs from the value of the plugin. It returns
// false if that is impossible.
func (f UserField) Set(object runtime.Object) bool {
	return f.other.IsValid() && setAt(reflect.ValueOf(object), f.steps, f.other)
}

// Kept reports whether the field of an object has the value of Set. A list may have more elements.
func (f UserField) Kept(object runtime.Object) bool {
	value := reflect.ValueOf(object)
	if len(f.steps) > 0 {
		last := len(f.steps) - 1
		if value = valueAt(value, f.steps[:last]); value.IsValid() {
			value = child(value, f.steps[last])
		}
	}
	if !value.IsValid() {
		return false
	}
	if f.element.IsValid() {
		return hasElement(value, f.element)
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
		if at.Kind() == reflect.Pointer && value.Type() == at.Type().Elem() {
			pointer := reflect.New(value.Type())
			pointer.Elem().Set(value)
			value = pointer
		}
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
