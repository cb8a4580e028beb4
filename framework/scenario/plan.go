package scenario

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// structPlan is how a struct is written in a file.
type structPlan struct {
	fields map[string]fieldPlan
	// names are the fields in the order in which they are declared.
	names []string
	// required are the names that must be there: those without omitempty.
	required []string
}

// fieldPlan is one field of a struct, maybe within structs that it embeds.
type fieldPlan struct {
	index []int
	typ   reflect.Type
}

// plans holds a plan for every struct that a scenario can hold. It is made once
// for each load and only read afterwards.
type plans map[reflect.Type]*structPlan

func newPlans() plans {
	made := plans{}
	made.add(reflect.TypeFor[Scenario]())
	return made
}

func (p plans) add(typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		p.add(typ.Elem())
	case reflect.Struct:
		if p[typ] != nil {
			return
		}
		plan := &structPlan{fields: map[string]fieldPlan{}}
		p[typ] = plan
		plan.collect(typ, nil)
		for _, name := range slices.Sorted(maps.Keys(plan.fields)) {
			p.add(plan.fields[name].typ)
		}
	}
}

// collect adds the fields of a struct and of those embedded in it. The outermost
// of one name wins, as in encoding/json.
func (s *structPlan) collect(typ reflect.Type, index []int) {
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
		if _, outer := s.fields[name]; outer {
			continue
		}
		s.fields[name] = fieldPlan{append(slices.Clip(index), i), member.Type}
		s.names = append(s.names, name)
		if !slices.Contains(strings.Split(options, ","), "omitempty") {
			s.required = append(s.required, name)
		}
	}
	for _, member := range embedded {
		s.collect(member.Type, append(slices.Clip(index), member.Index...))
	}
}

// known reports whether a struct has a field of that name in a file.
func known[T any](p plans, name string) bool {
	_, ok := p[reflect.TypeFor[T]()].fields[name]
	return ok
}

// elsewhere returns the places within a struct that have a field of that very
// name, "then" and "script.*" in a step, for who put it at the wrong depth. Of
// several depths it is the shallowest one.
func (p plans) elsewhere(within reflect.Type, name string) []string {
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
			plan := p[typ]
			if plan == nil || seen[typ] {
				continue
			}
			seen[typ] = true
			path := here.path + suffix
			if _, ok := plan.fields[name]; ok && path != "" {
				found = append(found, strings.TrimPrefix(path, "."))
			}
			for _, child := range plan.names {
				next = append(next, spot{plan.fields[child].typ, path + "." + child})
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}

// element returns the type of the values within pointers, lists and mappings, and
// how a path leads to them.
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
