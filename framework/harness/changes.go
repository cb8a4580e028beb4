package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	objects "github.com/admissiontest/admissiontest/internal/object"
)

// Changes returns the paths of the fields that the plugin changed in the object, sorted:
// "spec.tolerations[0]", "metadata.annotations[example.com/a]". The parts of a path are JSON names.
// Fields without JSON names, as in internal types, have their Go names with the first letter in
// lower case. A field that was set or cleared as a whole has one path. If a list became longer or
// shorter, each element that was added or removed at the end has one path.
func (r Result) Changes() []string {
	if objects.IsNil(r.Before) || objects.IsNil(r.Object) {
		return nil
	}
	return changes(r.Before, r.Object)
}

// changes returns the paths at which two objects differ.
func changes(before, after runtime.Object) []string {
	d := &differ{}
	was, isLoose := before.(runtime.Unstructured)
	now, loose := after.(runtime.Unstructured)
	if isLoose && loose {
		d.fields("", reflect.ValueOf(was.UnstructuredContent()), reflect.ValueOf(now.UnstructuredContent()))
	} else {
		d.walk("", reflect.ValueOf(before), reflect.ValueOf(after))
	}
	slices.Sort(d.paths)
	return slices.Compact(d.paths)
}

// differ collects paths.
type differ struct{ paths []string }

func (d *differ) found(path string) {
	if path == "" {
		path = "." // the object as a whole
	}
	d.paths = append(d.paths, path)
}

func (d *differ) walk(path string, was, is reflect.Value) {
	switch {
	case !was.IsValid() && !is.IsValid():
		return
	case was.IsValid() != is.IsValid() || was.Type() != is.Type():
		d.found(path)
		return
	case leaf(was.Type()):
		if !equality.Semantic.DeepEqual(was.Interface(), is.Interface()) {
			d.found(path)
		}
		return
	}
	switch was.Kind() {
	case reflect.Pointer, reflect.Interface:
		d.behind(path, was, is)
	case reflect.Struct:
		d.members(path, was, is)
	case reflect.Map:
		d.keys(path, was, is)
	case reflect.Slice, reflect.Array:
		d.elements(path, was, is)
	default:
		if !reflect.DeepEqual(was.Interface(), is.Interface()) {
			d.found(path)
		}
	}
}

func (d *differ) behind(path string, was, is reflect.Value) {
	switch {
	case was.IsNil() && is.IsNil():
	case was.IsNil() || is.IsNil():
		d.found(path)
	case was.Kind() == reflect.Interface && was.Elem().Kind() == reflect.Map && is.Elem().Kind() == reflect.Map:
		d.fields(path, was.Elem(), is.Elem())
	default:
		d.walk(path, was.Elem(), is.Elem())
	}
}

func (d *differ) members(path string, was, is reflect.Value) {
	for at := range was.NumField() {
		field := was.Type().Field(at)
		if !field.IsExported() {
			continue
		}
		name, inline := nameOf(field)
		switch {
		case name == "-":
		case inline:
			d.walk(path, was.Field(at), is.Field(at))
		default:
			d.walk(join(path, name), was.Field(at), is.Field(at))
		}
	}
}

// nameOf returns the JSON name of a field. If it has none, nameOf returns the Go name with the
// first letter in lower case.
func nameOf(field reflect.StructField) (name string, inline bool) {
	tag, tagged := field.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case name != "":
		return name, false
	case field.Anonymous && field.Type.Name() == "ObjectMeta":
		return "metadata", false
	case field.Anonymous || strings.Contains(options, "inline"):
		return "", true
	case tagged:
		return field.Name, false
	}
	letters := []rune(field.Name)
	letters[0] = unicode.ToLower(letters[0])
	return string(letters), false
}

// keys compares maps with arbitrary keys.
func (d *differ) keys(path string, was, is reflect.Value) {
	d.pairs(was, is, func(key reflect.Value) string { return fmt.Sprintf("%s[%v]", path, key) })
}

// fields compares maps of an unstructured object. The keys are names of fields, unless the path or
// a key shows that the keys are data, as in labels.
func (d *differ) fields(path string, was, is reflect.Value) {
	if holdsData(path) {
		d.keys(path, was, is)
		return
	}
	d.pairs(was, is, func(key reflect.Value) string {
		if name := key.String(); isFieldName(name) {
			return join(path, name)
		}
		return fmt.Sprintf("%s[%v]", path, key)
	})
}

func (d *differ) pairs(was, is reflect.Value, at func(key reflect.Value) string) {
	for _, key := range was.MapKeys() {
		if now := is.MapIndex(key); now.IsValid() {
			d.walk(at(key), was.MapIndex(key), now)
		} else {
			d.found(at(key))
		}
	}
	for _, key := range is.MapKeys() {
		if !was.MapIndex(key).IsValid() {
			d.found(at(key))
		}
	}
}

func (d *differ) elements(path string, was, is reflect.Value) {
	if was.Type().Elem().Kind() == reflect.Uint8 {
		if !bytes.Equal(was.Bytes(), is.Bytes()) {
			d.found(path)
		}
		return
	}
	for at := range max(was.Len(), is.Len()) {
		element := fmt.Sprintf("%s[%d]", path, at)
		if at < was.Len() && at < is.Len() {
			d.walk(element, was.Index(at), is.Index(at))
		} else {
			d.found(element)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// leaf reports whether a type is encoded as one JSON value, as a time or a quantity is.
func leaf(of reflect.Type) bool {
	if of.Kind() == reflect.Pointer || of.Kind() == reflect.Interface {
		return false
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	return of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler)
}

// isFieldName reports whether a key of an unstructured object can be the name of a field.
func isFieldName(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(letter rune) bool {
		return !unicode.IsLetter(letter) && !unicode.IsDigit(letter)
	})
}

// holdsData reports whether a path of an unstructured object is that of a map with arbitrary keys
// in Kubernetes' own types.
func holdsData(path string) bool {
	name := path[strings.LastIndex(path, ".")+1:]
	switch name {
	case "annotations", "labels", "matchLabels", "nodeSelector", "data", "binaryData", "stringData", "limits", "requests", "hard":
		return true
	default:
		return false
	}
}
