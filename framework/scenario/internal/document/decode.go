package document

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// MaxProblems is the largest number of problems that are reported for a file.
const MaxProblems = 100

// Format says how Go types are written in documents.
type Format struct {
	Structs Structs
	// Shorts are the short forms of structs.
	Shorts map[reflect.Type]Short
	// Customs decode types that are not written as the Go type says.
	Customs map[reflect.Type]func(d *Decoder, n *Node, into reflect.Value, where *Path)
	// Lists are types of lists for which one value is a short form of a list of one.
	Lists []reflect.Type
}

// Short is the short form of a struct: the value of one of its fields, in its place.
type Short struct {
	// Field is the name of the field.
	Field string
	// Kind is the kind of the value.
	Kind Kind
	// Expected says, in a message about a value of another kind, what was expected. If it is empty, that is a
	// map. Hint is as in Problem.
	Expected, Hint string
}

// Decoder sets Go values from nodes, strictly. It collects problems, and the structs that it set.
type Decoder struct {
	*Format
	// Document is the type of the document, for suggestions.
	Document reflect.Type
	// Problems are those that were found so far.
	Problems []Problem
	// Set are the structs that were set, each after the one that contains it.
	Set []*Decoded
}

// Decoded is a struct that was set from a value of a document.
type Decoded struct {
	// Struct is a pointer to the struct.
	Struct any
	Node   *Node
	Path   *Path
	// Valid is true if no problem was found in it.
	Valid bool
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

// WrongKind reports a value of another kind than expected.
func (d *Decoder) WrongKind(n *Node, where *Path, expected Kind) {
	hint := ""
	switch {
	case n.Kind == KindNull:
		hint = "give it a value or remove the field"
	case expected == KindText && n.Value != nil:
		hint = fmt.Sprintf("put it in quotes: %q", n.Raw)
	case expected == KindList && n.Value != nil:
		hint = fmt.Sprintf("write [%s]", n.Raw)
	case n.Kind == KindText && (expected == KindBool || expected == KindInteger) && (n.Raw == "true" || n.Raw == "false" || Digits(n.Raw)):
		hint = "write it without quotes"
	}
	d.Wrong(n, where, string(expected), hint)
}

// Wrong reports a value that cannot be decoded.
func (d *Decoder) Wrong(n *Node, where *Path, expected, hint string) {
	n.wrong = true
	d.Fail(n, fmt.Sprintf("%s is %s; expected %s", where, n.Describe(), expected), hint)
}

// Decode sets a struct, to which into is a pointer, from a document.
func (d *Decoder) Decode(root *Node, into any) {
	d.Document = reflect.TypeOf(into).Elem()
	d.Value(root, reflect.ValueOf(into).Elem(), nil)
}

// Value sets a value. The value's type decides which nodes are allowed.
func (d *Decoder) Value(n *Node, into reflect.Value, where *Path) {
	if n.Kind == KindRefused {
		return
	}
	if custom := d.Customs[into.Type()]; custom != nil {
		custom(d, n, into, where)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		made := reflect.New(into.Type().Elem())
		if d.Value(n, made.Elem(), where); !n.wrong {
			into.Set(made)
		}
	case reflect.Struct:
		d.structOrShort(n, into, where)
	case reflect.Map:
		d.mapping(n, into, where)
	case reflect.Slice:
		d.list(n, into, where)
	case reflect.Interface:
		if value := n.Plain(); value != nil {
			into.Set(reflect.ValueOf(value))
		}
	default:
		d.scalar(n, into, where)
	}
}

func (d *Decoder) scalar(n *Node, into reflect.Value, where *Path) {
	switch into.Kind() {
	case reflect.String:
		if text, ok := n.Value.(string); ok {
			into.SetString(text)
			return
		}
		d.WrongKind(n, where, KindText)
	case reflect.Bool:
		if truth, ok := n.Value.(bool); ok {
			into.SetBool(truth)
			return
		}
		d.WrongKind(n, where, KindBool)
	case reflect.Int, reflect.Int64:
		number, ok := n.Value.(int64)
		switch {
		case !ok:
			d.WrongKind(n, where, KindInteger)
		case number > math.MaxInt32 || number < math.MinInt32:
			d.Fail(n, fmt.Sprintf("%s is %d; expected an integer of 32 bits", where, number), "")
		default:
			into.SetInt(number)
		}
	default:
		d.Fail(n, fmt.Sprintf("%s cannot be decoded into %s; this is a bug in admissiontest", where, into.Type()), "please report it")
	}
}

func (d *Decoder) list(n *Node, into reflect.Value, where *Path) {
	for _, typ := range d.Lists {
		if typ == into.Type() {
			n = n.AsList()
		}
	}
	if n.Kind != KindList {
		d.WrongKind(n, where, KindList)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.Value(item, into.Index(i), where.Item(i))
	}
}

func (d *Decoder) mapping(n *Node, into reflect.Value, where *Path) {
	if n.Kind != KindMapping {
		d.WrongKind(n, where, KindMapping)
		return
	}
	if target, ok := into.Addr().Interface().(*map[string]any); ok {
		*target = n.Mapping()
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(n.Fields)))
	for _, field := range n.Fields {
		value := reflect.New(into.Type().Elem()).Elem()
		d.Value(field.Value, value, where.Field(field.Name))
		into.SetMapIndex(reflect.ValueOf(field.Name), value)
	}
}

// structOrShort sets a struct from a map, or from its short form.
func (d *Decoder) structOrShort(n *Node, into reflect.Value, where *Path) {
	switch short, ok := d.Shorts[into.Type()]; {
	case ok && n.Kind == short.Kind:
		set := d.set(n, into, where)
		set.short = short.Field
		d.Value(n, into.FieldByIndex(d.Structs[into.Type()].ByName[short.Field].Index), where)
	case short.Expected != "" && n.Kind != KindMapping:
		d.Wrong(n, where, short.Expected, short.Hint)
	default:
		d.Struct(n, into, where)
	}
}

func (d *Decoder) set(n *Node, into reflect.Value, where *Path) *Decoded {
	set := &Decoded{Struct: into.Addr().Interface(), Node: n, Path: where}
	d.Set = append(d.Set, set)
	return set
}

// Struct sets a struct from a map.
func (d *Decoder) Struct(n *Node, into reflect.Value, where *Path) {
	if n.Kind != KindMapping {
		d.WrongKind(n, where, KindMapping)
		return
	}
	set, before := d.set(n, into, where), len(d.Problems)
	d.fields(n, into, where)
	set.Valid = len(d.Problems) == before
}

// fields sets the fields of a struct from the fields of a map, in the order in which the struct declares them.
func (d *Decoder) fields(n *Node, into reflect.Value, where *Path) {
	known := d.Structs[into.Type()]
	complete := true
	for i := range n.Fields {
		if _, ok := known.ByName[n.Fields[i].Name]; !ok {
			complete = false // the unknown field is probably the missing one, misspelt
			d.unknownField(n.Fields[i], into.Type(), where)
		}
	}
	for _, name := range known.Names {
		if value := n.Get(name); value != nil {
			d.Value(value, into.FieldByIndex(known.ByName[name].Index), where.Field(name))
		}
	}
	for _, name := range known.Required {
		if complete && !n.Has(name) {
			d.Fail(n, fmt.Sprintf("%s has no %s; expected one", where, name), fmt.Sprintf("add %q", name+":"))
		}
	}
}

// unknownField reports a field that a struct does not have.
func (d *Decoder) unknownField(field Field, in reflect.Type, where *Path) {
	if len(d.Problems) > MaxProblems {
		d.Fail(field.Key, "", "") // it is only counted
		return
	}
	fields := d.Structs[in]
	expected, hint := "a field of "+where.String(), DidYouMean(field.Name, fields.Names)
	if hint == "" {
		expected = "one of " + strings.Join(fields.Names, ", ")
		if others := d.Structs.elsewhere(in, field.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: move it there", strings.Join(others, " and "))
		} else if others := d.Structs.elsewhere(d.Document, field.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: check the indentation", strings.Join(others, " and "))
		}
	}
	d.Fail(field.Key, fmt.Sprintf("unknown field %s in %s; expected %s", Quote(field.Name), where, expected), hint)
}
