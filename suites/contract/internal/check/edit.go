package check

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

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
	e.add(is)
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
			e.undo(was.Field(i), is.Field(i), jsonName(is.Type().Field(i), path))
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
		if e.offers("reverted %s", cmp.Or(path, "the object")) {
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
			if e.offers("reverted %s", at) {
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
func (e *ForeignEdit) add(to runtime.Object) {
	Locations(to, func(at Location, is reflect.Value) {
		switch of := is.Type(); {
		case e.Name != "":
		case is.Kind() == reflect.Map && of.Key().Kind() == reflect.String && of.Elem().Kind() == reflect.String:
			if e.offers("added a key to %s", at.Path) {
				is.SetMapIndex(reflect.ValueOf(ForeignMark).Convert(of.Key()), reflect.ValueOf("x").Convert(of.Elem()))
			}
		case is.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct && is.CanSet():
			if named := is.Index(0).FieldByName("Name"); named.IsValid() && named.Kind() == reflect.String && e.offers("added an entry to %s", at.Path) {
				// The copy may share pointers with the first element: only the plugin sees them.
				more := reflect.New(of.Elem()).Elem()
				more.Set(is.Index(0))
				more.FieldByName("Name").SetString(named.String() + "-foreign")
				is.Set(reflect.Append(is.Slice3(0, is.Len(), is.Len()), more))
			}
		}
	})
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

// ForeignMark is a key or value that only another client writes, and ForeignField a field
// that no type has.
const (
	ForeignMark  = "contract.example.com/foreign"
	ForeignField = "contractForeign"
)
