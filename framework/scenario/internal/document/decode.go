package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Decoder sets Go values from the values of a document that a Schema has checked. It collects the structs that it
// set, and problems. What is of the wrong kind is not set.
type Decoder struct {
	// Shorts are the structs for which the value of one of their fields is a short form.
	Shorts map[reflect.Type]string
	// Lists are types of lists for which one value is a short form of a list of one.
	Lists []reflect.Type
	// Problems are those that were found so far.
	Problems []Problem
	// Set are the structs that were set, each after the one that contains it.
	Set []*Decoded
	// unfit are the values that could not be set.
	unfit []Problem
}

// Decoded is a struct that was set from a value of a document.
type Decoded struct {
	// Struct is a pointer to the struct.
	Struct any
	Node   *Node
	Path   *Path
	// short is the field that the value is a short form of, or empty.
	short string
}

// Written returns the value of a field, also if it is of the wrong kind.
func (s *Decoded) Written(field string) *Node {
	if field == s.short {
		return s.Node
	}
	return s.Node.Get(field)
}

// Get returns the value of a field from which the field of the struct was set, or nil.
func (s *Decoded) Get(field string) *Node {
	value := s.Written(field)
	if value == nil || value.Refused() {
		return nil
	}
	return value
}

// At returns the path to a field. It is that of the struct for a short form.
func (s *Decoded) At(field string) *Path {
	if field == s.short {
		return s.Path
	}
	return s.Path.Field(field)
}

// Fail reports a problem at a value.
func (d *Decoder) Fail(n *Node, message, hint string) {
	d.Problems = append(d.Problems, Problem{n, message, hint})
}

// Decode sets a struct, to which into is a pointer, from a document. A value that does not fit and that the schema
// does not refuse, such as 409.0 for an integer, is a problem too.
func (d *Decoder) Decode(document *Node, schema *Schema, into any) {
	invalid := schema.Check(document)
	d.value(document, reflect.ValueOf(into).Elem(), nil)
	if len(invalid) == 0 {
		invalid = d.unfit
	}
	d.Problems = append(d.Problems, invalid...)
}

func (d *Decoder) value(n *Node, into reflect.Value, where *Path) {
	if n.Refused() {
		return
	}
	if text, ok := into.Addr().Interface().(json.Unmarshaler); ok && n.Kind == KindText {
		if data, err := json.Marshal(n.Value); err != nil || text.UnmarshalJSON(data) != nil {
			d.misfit(n, where)
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		made := reflect.New(into.Type().Elem())
		d.value(n, made.Elem(), where)
		into.Set(made)
	case reflect.Struct:
		d.structure(n, into, where)
	case reflect.Map:
		d.mapping(n, into, where)
	case reflect.Slice:
		d.list(n, into, where)
	default:
		d.scalar(n, into, where)
	}
}

// scalar sets a string, a boolean, a number or a value of any type.
func (d *Decoder) scalar(n *Node, into reflect.Value, where *Path) {
	value := reflect.ValueOf(n.Plain())
	switch {
	case value.IsValid() && value.Type().AssignableTo(into.Type()):
		into.Set(value)
	case value.IsValid() && value.Kind() == reflect.String && into.Kind() == reflect.String:
		into.SetString(n.Raw)
	case n.Kind == KindInteger && into.CanInt():
		into.SetInt(value.Int())
	case into.Kind() != reflect.Interface:
		d.misfit(n, where)
	}
}

// misfit notes a value that cannot be set.
func (d *Decoder) misfit(n *Node, where *Path) {
	d.unfit = append(d.unfit, Problem{n, fmt.Sprintf("%s is %s; expected a value of another form", where, n.Describe()), "write it as the format says"})
}

func (d *Decoder) list(n *Node, into reflect.Value, where *Path) {
	if slices.Contains(d.Lists, into.Type()) {
		n = n.AsList()
	}
	if n.Kind != KindList {
		d.misfit(n, where)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.value(item, into.Index(i), where.Item(i))
	}
}

func (d *Decoder) mapping(n *Node, into reflect.Value, where *Path) {
	if n.Kind != KindMapping {
		d.misfit(n, where)
		return
	}
	if target, ok := into.Addr().Interface().(*map[string]any); ok {
		*target = n.Mapping()
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(n.Fields)))
	for _, field := range n.Fields {
		value := reflect.New(into.Type().Elem()).Elem()
		d.value(field.Value, value, where.Field(field.Name))
		into.SetMapIndex(reflect.ValueOf(field.Name), value)
	}
}

// structure sets a struct from a map, or from its short form.
func (d *Decoder) structure(n *Node, into reflect.Value, where *Path) {
	short, hasShort := d.Shorts[into.Type()]
	if n.Kind != KindMapping && !hasShort {
		d.misfit(n, where)
		return
	}
	set := &Decoded{Struct: into.Addr().Interface(), Node: n, Path: where}
	d.Set = append(d.Set, set)
	if n.Kind != KindMapping {
		set.short = short
	}
	if n.Value == true {
		return // the short form of a struct of which nothing is set
	}
	for _, member := range reflect.VisibleFields(into.Type()) {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		if value := set.Written(name); value != nil && (n.Kind == KindMapping || name == short) {
			d.value(value, into.FieldByIndex(member.Index), set.At(name))
		}
	}
}
