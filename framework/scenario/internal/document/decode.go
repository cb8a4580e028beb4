package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Decoder sets Go values from the values of a document in which a Schema has found nothing wrong. It collects the
// structs that it set, and problems.
type Decoder struct {
	// Shorts are the structs for which the value of one of their fields is a short form.
	Shorts map[reflect.Type]string
	// Lists are types of lists for which one value is a short form of a list of one.
	Lists []reflect.Type
	// Problems are those that were found so far.
	Problems []Problem
	// Set are the structs that were set, each after the one that contains it.
	Set []Decoded
}

// Decoded is a struct that was set from a value of a document.
type Decoded struct {
	// Struct is a pointer to the struct.
	Struct any
	Node   *Node
	Path   Path
	// short is the field that the value is a short form of, or empty.
	short string
}

// Get returns the value of a field, or nil.
func (s Decoded) Get(field string) *Node {
	if field == s.short {
		return s.Node
	}
	return s.Node.Get(field)
}

// At returns the path to a field. It is that of the struct for a short form.
func (s Decoded) At(field string) Path {
	if field == s.short {
		return s.Path
	}
	return s.Path.Field(field)
}

// Fail reports a problem at a value.
func (d *Decoder) Fail(n *Node, message, hint string) {
	d.Problems = append(d.Problems, Problem{n, message, hint})
}

// Decode sets a struct, to which into is a pointer, from a document.
func (d *Decoder) Decode(document *Node, into any) {
	d.value(document, reflect.ValueOf(into).Elem(), "")
}

func (d *Decoder) value(n *Node, into reflect.Value, where Path) {
	if text, ok := into.Addr().Interface().(json.Unmarshaler); ok && n.Kind == KindText {
		if data, err := json.Marshal(n.Value); err != nil || text.UnmarshalJSON(data) != nil {
			d.Fail(n, fmt.Sprintf("%s is %s; expected a value of another form", where, n.Describe()), "")
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
	case reflect.String:
		into.SetString(n.Raw)
	default:
		if value := reflect.ValueOf(n.Plain()); value.IsValid() {
			into.Set(value.Convert(into.Type())) // 409.0 is an integer too
		}
	}
}

func (d *Decoder) list(n *Node, into reflect.Value, where Path) {
	if slices.Contains(d.Lists, into.Type()) {
		n = n.AsList()
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.value(item, into.Index(i), where.Item(i))
	}
}

func (d *Decoder) mapping(n *Node, into reflect.Value, where Path) {
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
func (d *Decoder) structure(n *Node, into reflect.Value, where Path) {
	set := Decoded{Struct: into.Addr().Interface(), Node: n, Path: where}
	if n.Kind != KindMapping {
		set.short = d.Shorts[into.Type()]
	}
	d.Set = append(d.Set, set)
	if n.Value == true {
		return // the short form of a struct of which nothing is set
	}
	for _, member := range reflect.VisibleFields(into.Type()) {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		if value := set.Get(name); value != nil {
			d.value(value, into.FieldByIndex(member.Index), set.At(name))
		}
	}
}
