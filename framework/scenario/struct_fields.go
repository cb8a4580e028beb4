package scenario

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// structFields describes how a struct is written in a file.
type structFields struct {
	byName map[string]structField
	// names are in the order of their declaration.
	names []string
	// required are the names of the fields without omitempty.
	required []string
}

// structField is a field of a struct, or of a struct that it embeds.
type structField struct {
	index []int
	typ   reflect.Type
}

// allStructs has every struct type that a scenario can contain. It is built once
// for each load and then only read.
type allStructs map[reflect.Type]*structFields

func newAllStructs() allStructs {
	all := allStructs{}
	all.add(reflect.TypeFor[Scenario]())
	all.add(reflect.TypeFor[PolicyTest]())
	return all
}

// add adds the struct types that a type consists of.
func (a allStructs) add(typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		a.add(typ.Elem())
	case reflect.Struct:
		if a[typ] != nil {
			return
		}
		fields := &structFields{byName: map[string]structField{}}
		a[typ] = fields
		fields.collect(typ, nil)
		for _, name := range slices.Sorted(maps.Keys(fields.byName)) {
			a.add(fields.byName[name].typ)
		}
	}
}

// collect adds the fields of a struct and of those that it embeds. The outermost
// field of a name is used, as in encoding/json.
func (s *structFields) collect(typ reflect.Type, index []int) {
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
		if _, outer := s.byName[name]; outer {
			continue
		}
		s.byName[name] = structField{append(slices.Clip(index), i), member.Type}
		s.names = append(s.names, name)
		if !slices.Contains(strings.Split(options, ","), "omitempty") {
			s.required = append(s.required, name)
		}
	}
	for _, member := range embedded {
		s.collect(member.Type, append(slices.Clip(index), member.Index...))
	}
}

// hasField reports whether a struct type has a field of that name in a file.
func hasField[T any](a allStructs, name string) bool {
	_, ok := a[reflect.TypeFor[T]()].byName[name]
	return ok
}

// elsewhere returns the paths below a struct type at which a field of that name
// exists, "then" and "script.*" below a step for instance, as a suggestion for a
// field at the wrong depth. Only the paths of the smallest depth are returned.
func (a allStructs) elsewhere(within reflect.Type, name string) []string {
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
			fields := a[typ]
			if fields == nil || seen[typ] {
				continue
			}
			seen[typ] = true
			path := here.path + suffix
			if _, ok := fields.byName[name]; ok && path != "" {
				found = append(found, strings.TrimPrefix(path, "."))
			}
			for _, child := range fields.names {
				next = append(next, spot{fields.byName[child].typ, path + "." + child})
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
