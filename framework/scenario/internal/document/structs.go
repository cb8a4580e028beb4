package document

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Fields describes how a struct is written in a file.
type Fields struct {
	ByName map[string]StructField
	// Names are in the order of their declaration.
	Names []string
	// Required are the names of the fields without omitempty.
	Required []string
}

// StructField is a field of a struct, or of a struct that it embeds.
type StructField struct {
	// Index is for reflect.Value.FieldByIndex.
	Index []int
	Type  reflect.Type
}

// Structs has every struct type that documents can contain. It is only read.
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
		fields := &Fields{ByName: map[string]StructField{}}
		s[typ] = fields
		fields.collect(typ)
		for _, name := range slices.Sorted(maps.Keys(fields.ByName)) {
			s.add(fields.ByName[name].Type)
		}
	}
}

// collect adds the fields of a struct, and after them the fields of the structs that it embeds.
func (f *Fields) collect(typ reflect.Type) {
	members := reflect.VisibleFields(typ)
	slices.SortStableFunc(members, func(a, b reflect.StructField) int { return cmp.Compare(len(a.Index), len(b.Index)) })
	for _, member := range members {
		name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "-" || !member.IsExported() || member.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = member.Name
		}
		f.ByName[name] = StructField{member.Index, member.Type}
		f.Names = append(f.Names, name)
		if !slices.Contains(strings.Split(options, ","), "omitempty") {
			f.Required = append(f.Required, name)
		}
	}
}

// HasField reports whether a struct type has a field of that name in a file.
func HasField[T any](s Structs, name string) bool {
	_, ok := s[reflect.TypeFor[T]()].ByName[name]
	return ok
}

// elsewhere returns the paths below a struct type at which a field of that name
// exists, "then" and "script.*" below a step for instance, as a suggestion for a
// field at the wrong depth. Only the paths of the smallest depth are returned.
func (s Structs) elsewhere(within reflect.Type, name string) []string {
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

// element returns the type inside of pointers, lists and maps, and the suffix
// of a path for these: "[]" for each list and ".*" for each map.
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
