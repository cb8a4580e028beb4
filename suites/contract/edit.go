package contract

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// editor makes one of the edits that an object offers, in the place of somebody else:
// where it was changed, the change is undone; maps and lists of named things get one
// more. At is which, counted from 0.
type editor struct {
	at   int
	seen int
	// name says what was done; empty means that there is no such edit.
	name string
}

// object edits the object is, which was another before; it takes over parts of was.
// Changes are undone first, then things are added.
func (e *editor) object(was, is runtime.Object) {
	before, after := reflect.ValueOf(was), reflect.ValueOf(is)
	if before.Type() != after.Type() || before.Kind() != reflect.Pointer {
		return
	}
	e.undo(before.Elem(), after.Elem(), "")
	e.add(after.Elem(), "")
}

// offers counts an edit, and reports whether it is the one to be made.
func (e *editor) offers(format string, args ...any) bool {
	if e.name != "" {
		return false
	}
	chosen := e.seen == e.at
	e.seen++
	if chosen {
		e.name = fmt.Sprintf(format, args...)
	}
	return chosen
}

// undo offers to undo each change between two values of one type.
func (e *editor) undo(was, is reflect.Value, path string) {
	if e.name != "" || alike(was, is) {
		return
	}
	switch {
	case is.Kind() == reflect.Pointer && !was.IsNil() && !is.IsNil():
		e.undo(was.Elem(), is.Elem(), path)
	case is.Kind() == reflect.Struct && open(is.Type()):
		for i := range is.NumField() {
			e.undo(was.Field(i), is.Field(i), path+"."+is.Type().Field(i).Name)
		}
	case is.Kind() == reflect.Map && !was.IsNil() && !is.IsNil():
		e.undoMap(was, is, path)
	case is.Kind() == reflect.Slice && was.Len() == is.Len():
		for i := range is.Len() {
			e.undo(was.Index(i), is.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case is.Kind() == reflect.Interface && !was.IsNil() && !is.IsNil() && was.Elem().Type() == is.Elem().Type() && holds(is.Elem().Kind()):
		e.undo(was.Elem(), is.Elem(), path)
	case is.CanSet():
		if e.offers("undone the change of %s", label(path)) {
			is.Set(was)
		}
	}
}

func (e *editor) undoMap(was, is reflect.Value, path string) {
	for _, key := range keysOf(was, is) {
		before, after := was.MapIndex(key), is.MapIndex(key)
		at := fmt.Sprintf("%s[%v]", path, key)
		switch {
		case !before.IsValid() || !after.IsValid():
			if e.offers("undone the change of %s", label(at)) {
				is.SetMapIndex(key, before) // removes it, where there was none
			}
		default:
			changed := reflect.New(after.Type()).Elem()
			changed.Set(after)
			e.undo(before, changed, at)
			is.SetMapIndex(key, changed)
		}
	}
}

// add offers to add to each map of strings, and to each list of things that have names.
func (e *editor) add(is reflect.Value, path string) {
	if e.name != "" {
		return
	}
	switch is.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !is.IsNil() {
			e.add(is.Elem(), path)
		}
	case reflect.Struct:
		if !open(is.Type()) {
			return
		}
		for i := range is.NumField() {
			e.add(is.Field(i), path+"."+is.Type().Field(i).Name)
		}
	case reflect.Map:
		e.addToMap(is, path)
	case reflect.Slice:
		e.addToSlice(is, path)
	}
}

func (e *editor) addToMap(is reflect.Value, path string) {
	of := is.Type()
	if of.Key().Kind() != reflect.String || is.IsNil() {
		return
	}
	if of.Elem().Kind() == reflect.String && e.offers("added a key to %s", label(path)) {
		is.SetMapIndex(reflect.ValueOf(foreignMark).Convert(of.Key()), reflect.ValueOf("x").Convert(of.Elem()))
	}
	for _, key := range keysOf(is) {
		if value := is.MapIndex(key); value.Kind() == reflect.Interface {
			e.add(value, fmt.Sprintf("%s[%v]", path, key))
		}
	}
}

func (e *editor) addToSlice(is reflect.Value, path string) {
	if is.Len() == 0 || is.Type().Elem().Kind() != reflect.Struct {
		return
	}
	if named := is.Index(0).FieldByName("Name"); named.IsValid() && named.Kind() == reflect.String && is.CanSet() && e.offers("added one more to %s", label(path)) {
		// The copy shares what it points to with the first one, as far as the plugin
		// is concerned: nobody else has this object.
		more := reflect.New(is.Type().Elem()).Elem()
		more.Set(is.Index(0))
		more.FieldByName("Name").SetString(named.String() + "-foreign")
		is.Set(reflect.Append(is.Slice3(0, is.Len(), is.Len()), more))
		return
	}
	for i := range is.Len() {
		e.add(is.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// open reports whether all fields of a struct type can be seen and set.
func open(of reflect.Type) bool {
	for i := range of.NumField() {
		if !of.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// holds reports whether values of a kind refer to others.
func holds(kind reflect.Kind) bool {
	return kind == reflect.Map || kind == reflect.Slice || kind == reflect.Pointer
}

// alike compares values by what they mean.
func alike(a, b reflect.Value) (equal bool) {
	if !a.CanInterface() || !b.CanInterface() {
		return true
	}
	defer func() {
		if recover() != nil { // of fields that are not exported
			equal = reflect.DeepEqual(a.Interface(), b.Interface())
		}
	}()
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

// keysOf returns the keys of maps of one type, in an order that is always the same.
func keysOf(maps ...reflect.Value) []reflect.Value {
	found := map[string]reflect.Value{}
	for _, each := range maps {
		for _, key := range each.MapKeys() {
			found[fmt.Sprint(key)] = key
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	keys := make([]reflect.Value, len(names))
	for i, name := range names {
		keys[i] = found[name]
	}
	return keys
}

// label names a place: "ObjectMeta.Labels[team]".
func label(path string) string {
	if path == "" {
		return "the object"
	}
	return strings.TrimPrefix(path, ".")
}
