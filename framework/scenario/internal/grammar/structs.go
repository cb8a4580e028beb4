package grammar

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Fields describes how a struct is written in a file.
type Fields struct {
	ByName map[string]Field
	// Names are in the order of their declaration.
	Names []string
	// Required are the names of the fields without omitempty.
	Required []string
}

// Field is a field of a struct, or of a struct that it embeds.
type Field struct {
	// Index is for reflect.Value.FieldByIndex.
	Index []int
	Type  reflect.Type
}

// Structs has every struct type that a document can contain. It is built once for each load and then
// only read.
type Structs map[reflect.Type]*Fields

// StructsOf returns the structs that documents of some types can contain.
func StructsOf(documents ...reflect.Type) Structs {
	all := Structs{}
	for _, document := range documents {
		all.add(document)
	}
	return all
}

// add adds the struct types that a type consists of.
func (s Structs) add(typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.add(typ.Elem())
	case reflect.Struct:
		if s[typ] != nil {
			return
		}
		fields := &Fields{ByName: map[string]Field{}}
		s[typ] = fields
		fields.collect(typ, nil)
		for _, name := range slices.Sorted(maps.Keys(fields.ByName)) {
			s.add(fields.ByName[name].Type)
		}
	}
}

// collect adds the fields of a struct and of those that it embeds. The outermost
// field of a name is used, as in encoding/json.
func (f *Fields) collect(typ reflect.Type, index []int) {
	var embedded []reflect.StructField
	for i := range typ.NumField() {
		member := typ.Field(i)
		tag := member.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !member.IsExported() {
			continue
		}
		if member.Anonymous && name == "" && member.Type.Kind() == reflect.Struct {
			embedded = append(embedded, member)
			continue
		}
		if name == "" {
			name = member.Name
		}
		if _, outer := f.ByName[name]; outer {
			continue
		}
		f.ByName[name] = Field{append(slices.Clip(index), i), member.Type}
		f.Names = append(f.Names, name)
		if !slices.Contains(strings.Split(options, ","), "omitempty") {
			f.Required = append(f.Required, name)
		}
	}
	for _, member := range embedded {
		f.collect(member.Type, append(slices.Clip(index), member.Index...))
	}
}

// HasField reports whether a struct type has a field of that name in a file.
func HasField[T any](s Structs, name string) bool {
	_, ok := s[reflect.TypeFor[T]()].ByName[name]
	return ok
}

// Elsewhere returns the paths below a struct type at which a field of that name
// exists, "then" and "script.*" below a step for instance, as a suggestion for a
// field at the wrong depth. Only the paths of the smallest depth are returned.
func (s Structs) Elsewhere(within reflect.Type, name string) []string {
	type spot struct {
		typ  reflect.Type
		path string
	}
	seen := map[reflect.Type]bool{}
	for level := []spot{{within, ""}}; len(level) > 0; {
		var found []string
		var next []spot
		for _, here := range level {
			typ, suffix := element(here.typ)
			fields := s[typ]
			if fields == nil || seen[typ] {
				continue
			}
			seen[typ] = true
			path := here.path + suffix
			if _, ok := fields.ByName[name]; ok && path != "" {
				found = append(found, strings.TrimPrefix(path, "."))
			}
			for _, child := range fields.Names {
				next = append(next, spot{fields.ByName[child].Type, path + "." + child})
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}

// element returns the type inside of pointers, lists and mappings, and the suffix
// of a path for these: "[]" for each list and ".*" for each mapping.
func element(typ reflect.Type) (reflect.Type, string) {
	suffix := ""
	for {
		switch typ.Kind() {
		case reflect.Pointer:
		case reflect.Slice:
			suffix += "[]"
		case reflect.Map:
			suffix += ".*"
		default:
			return typ, suffix
		}
		typ = typ.Elem()
	}
}
