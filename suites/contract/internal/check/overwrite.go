package check

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Overwritten has the values that Overwrite has replaced.
type Overwritten struct {
	undo []func()
}

// Overwrite replaces each value in the memory that the roots refer to: targets of pointers, entries
// of maps, and elements of slices up to their capacity. If spare returns true for a pointer, map or
// slice, Overwrite does not replace its values but still follows references in them. It does not
// replace unexported fields, such as the fields of times.
func Overwrite(spare func(value reflect.Value) bool, roots ...any) *Overwritten {
	s := &Overwritten{}
	var values []reflect.Value
	walk(roots, func(value reflect.Value) {
		if !spare(value) {
			values = append(values, value)
		}
	})
	for _, value := range values {
		switch value.Kind() {
		case reflect.Pointer:
			s.overwriteValue(value.Elem())
		case reflect.Map:
			s.overwriteMap(value)
		case reflect.Slice:
			all := value.Slice3(0, value.Cap(), value.Cap())
			for i := range all.Len() {
				s.overwriteValue(all.Index(i))
			}
		}
	}
	return s
}

// OverwriteContent replaces all values of an object except its kind and its metadata. It does not replace
// unexported fields.
func OverwriteContent(object runtime.Object) {
	if loose, ok := object.(*unstructured.Unstructured); ok {
		content := maps.Clone(loose.Object)
		for _, kept := range []string{"apiVersion", "kind", "metadata"} {
			delete(content, kept)
		}
		Overwrite(SpareNone, content)
		maps.Copy(loose.Object, content)
		return
	}
	value := reflect.ValueOf(object).Elem()
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() && field.Name != "ObjectMeta" && field.Name != "TypeMeta" {
			Overwrite(SpareNone, value.Field(i).Addr().Interface())
		}
	}
}

// Restore writes the old values again.
func (s *Overwritten) Restore() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

// overwriteValue replaces a value, but not memory that it refers to.
func (s *Overwritten) overwriteValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.overwriteValue(v.Field(i))
			}
		}
		return
	case reflect.Array:
		for i := range v.Len() {
			s.overwriteValue(v.Index(i))
		}
		return
	}
	other, ok := otherThan(v)
	if !ok || !v.CanSet() {
		return
	}
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	s.undo = append(s.undo, func() { v.Set(was) })
	v.Set(other)
}

// overwriteMap replaces the values of a map, and adds a key.
func (s *Overwritten) overwriteMap(m reflect.Value) {
	for _, key := range m.MapKeys() {
		was := m.MapIndex(key)
		if other, ok := otherThan(was); ok {
			s.undo = append(s.undo, func() { m.SetMapIndex(key, was) })
			m.SetMapIndex(key, other)
		}
	}
	if m.Type().Key().Kind() != reflect.String {
		return
	}
	key := reflect.ValueOf(ForeignMark).Convert(m.Type().Key())
	if !m.MapIndex(key).IsValid() {
		s.undo = append(s.undo, func() { m.SetMapIndex(key, reflect.Value{}) })
		m.SetMapIndex(key, reflect.Zero(m.Type().Elem()))
	}
}

// otherThan returns a different value of the same type. It returns false for values that
// refer to other memory, and for structs and arrays.
func otherThan(v reflect.Value) (reflect.Value, bool) {
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		other.SetInt(v.Int() ^ 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		other.SetUint(v.Uint() ^ 1)
	case reflect.Float32, reflect.Float64:
		other.SetFloat(v.Float() + 1)
	case reflect.String:
		other.SetString(v.String() + "-overwritten")
	case reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		inner, ok := otherThan(v.Elem())
		if !ok {
			return v, false
		}
		other.Set(inner)
	default:
		return v, false
	}
	return other, true
}

// SpareNone makes Overwrite replace all memory.
func SpareNone(reflect.Value) bool { return false }
