package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// ForeignEdit is an edit that another client could make to an object: it undoes a change, or adds
// an entry to a map or to a list of named values. Several edits are possible for an object; Index
// selects one.
type ForeignEdit struct {
	// Index selects the edit. The first one is 0.
	Index int
	// Name describes the edit that Apply made. Empty means that there is no such edit.
	Name string

	seen int
}

// Apply makes the selected edit to the object is. Was is the object as it was before a plugin
// changed it; the edited object may share memory with was. The first edits undo changes, the others
// add entries.
func (e *ForeignEdit) Apply(was, is runtime.Object) {
	before, after := reflect.ValueOf(was), reflect.ValueOf(is)
	if before.Type() != after.Type() || before.Kind() != reflect.Pointer {
		return
	}
	e.undo(before.Elem(), after.Elem(), "")
	e.add(after.Elem(), "")
}

// offers counts a possible edit, and reports whether it is the selected edit.
func (e *ForeignEdit) offers(format string, args ...any) bool {
	if e.Name != "" {
		return false
	}
	chosen := e.seen == e.Index
	e.seen++
	if chosen {
		e.Name = fmt.Sprintf(format, args...)
	}
	return chosen
}

// undo undoes the selected change between two values of the same type.
func (e *ForeignEdit) undo(was, is reflect.Value, path string) {
	if e.Name != "" || equalValues(was, is) {
		return
	}
	switch {
	case is.Kind() == reflect.Pointer && !was.IsNil() && !is.IsNil():
		e.undo(was.Elem(), is.Elem(), path)
	case is.Kind() == reflect.Struct && allExported(is.Type()):
		for i := range is.NumField() {
			e.undo(was.Field(i), is.Field(i), path+"."+is.Type().Field(i).Name)
		}
	case is.Kind() == reflect.Map && !was.IsNil() && !is.IsNil():
		e.undoMap(was, is, path)
	case is.Kind() == reflect.Slice && was.Len() == is.Len():
		for i := range is.Len() {
			e.undo(was.Index(i), is.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case is.Kind() == reflect.Interface && !was.IsNil() && !is.IsNil() && was.Elem().Type() == is.Elem().Type() && isReference(is.Elem().Kind()):
		e.undo(was.Elem(), is.Elem(), path)
	case is.CanSet():
		if e.offers("reverted %s", label(path)) {
			is.Set(was)
		}
	}
}

func (e *ForeignEdit) undoMap(was, is reflect.Value, path string) {
	for _, key := range keysOf(was, is) {
		before, after := was.MapIndex(key), is.MapIndex(key)
		at := fmt.Sprintf("%s[%v]", path, key)
		switch {
		case !before.IsValid() || !after.IsValid():
			if e.offers("reverted %s", label(at)) {
				is.SetMapIndex(key, before) // removes the key if there was none before
			}
		default:
			changed := reflect.New(after.Type()).Elem()
			changed.Set(after)
			e.undo(before, changed, at)
			is.SetMapIndex(key, changed)
		}
	}
}

// add adds an entry to the selected map of strings or list of named values.
func (e *ForeignEdit) add(is reflect.Value, path string) {
	if e.Name != "" {
		return
	}
	switch is.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !is.IsNil() {
			e.add(is.Elem(), path)
		}
	case reflect.Struct:
		if !allExported(is.Type()) {
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

func (e *ForeignEdit) addToMap(is reflect.Value, path string) {
	of := is.Type()
	if of.Key().Kind() != reflect.String || is.IsNil() {
		return
	}
	if of.Elem().Kind() == reflect.String && e.offers("added a key to %s", label(path)) {
		is.SetMapIndex(reflect.ValueOf(ForeignMark).Convert(of.Key()), reflect.ValueOf("x").Convert(of.Elem()))
	}
	for _, key := range keysOf(is) {
		if value := is.MapIndex(key); value.Kind() == reflect.Interface {
			e.add(value, fmt.Sprintf("%s[%v]", path, key))
		}
	}
}

func (e *ForeignEdit) addToSlice(is reflect.Value, path string) {
	if is.Len() == 0 || is.Type().Elem().Kind() != reflect.Struct {
		return
	}
	if named := is.Index(0).FieldByName("Name"); named.IsValid() && named.Kind() == reflect.String && is.CanSet() && e.offers("added an entry to %s", label(path)) {
		// The copy may share pointers with the first element: only the plugin sees them.
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

// allExported reports whether all fields of a struct type are exported.
func allExported(of reflect.Type) bool {
	for i := range of.NumField() {
		if !of.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// isReference reports whether values of a kind refer to other values.
func isReference(kind reflect.Kind) bool {
	return kind == reflect.Map || kind == reflect.Slice || kind == reflect.Pointer
}

// equalValues compares values by their meaning.
func equalValues(a, b reflect.Value) (equal bool) {
	if !a.CanInterface() || !b.CanInterface() {
		return true
	}
	defer func() {
		if recover() != nil { // equality panics at unexported fields
			equal = reflect.DeepEqual(a.Interface(), b.Interface())
		}
	}()
	return equality.Semantic.DeepEqual(a.Interface(), b.Interface())
}

// keysOf returns the keys of maps of the same type, sorted.
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

// label returns the name of a path: "ObjectMeta.Labels[team]".
func label(path string) string {
	if path == "" {
		return "the object"
	}
	return strings.TrimPrefix(path, ".")
}

// ForeignMark is a key or value that only another client writes, and ForeignField a field
// that no type has.
const (
	ForeignMark  = "contract.example.com/foreign"
	ForeignField = "contractForeign"
)
