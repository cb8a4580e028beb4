package decode

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// Decoder sets Go values from nodes, strictly, and collects errors.
type Decoder struct {
	// File is the name of the file, for errors.
	File string
	// Structs has the structs of the document.
	Structs grammar.Structs
	// Document is the type of the document; nil means Scenario.
	Document reflect.Type
	// Private is true for a file whose values no error shows.
	Private bool
	// Errors are those that were found so far.
	Errors []*scenario.Error
}

// Fail reports an error at a value.
func (d *Decoder) Fail(n *strictyaml.Node, message, hint string) {
	d.Errors = append(d.Errors, &scenario.Error{File: d.File, Line: n.Line, Column: n.Column, Message: message, Hint: hint})
}

// FailField reports an error at the name of a field.
func (d *Decoder) FailField(entry *strictyaml.Field, message, hint string) {
	d.Errors = append(d.Errors, &scenario.Error{File: d.File, Line: entry.Line, Column: entry.Column, Message: message, Hint: hint})
}

// WrongKind reports a value of another kind than expected.
func (d *Decoder) WrongKind(n *strictyaml.Node, where *Place, expected strictyaml.Kind) {
	hint := ""
	switch {
	case n.Kind == strictyaml.KindNull:
		hint = "give it a value or remove the field"
	case expected == strictyaml.KindText && n.Value != nil:
		hint = fmt.Sprintf("put it in quotes: %q", n.Raw)
	case expected == strictyaml.KindList && n.Value != nil:
		hint = fmt.Sprintf("write [%s]", n.Raw)
	case n.Kind == strictyaml.KindText && (expected == strictyaml.KindBool || expected == strictyaml.KindInteger):
		hint = "write it without quotes"
		if n.Raw != "true" && n.Raw != "false" && !strictyaml.Digits(n.Raw) {
			hint = ""
		}
	}
	d.Fail(n, fmt.Sprintf("%s is %s; expected %s", where, n.Describe(), expected), hint)
}

// document returns the type of the document.
func (d *Decoder) document() reflect.Type {
	if d.Document != nil {
		return d.Document
	}
	return reflect.TypeFor[scenario.Scenario]()
}

// decode sets a value. The value's type decides which nodes are allowed.
func (d *Decoder) decode(n *strictyaml.Node, into reflect.Value, where *Place) {
	if n.Kind == strictyaml.KindRefused {
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *scenario.Calls:
		d.calls(n, target, where)
		return
	case *scenario.Call:
		if text, ok := n.Value.(string); ok {
			target.Webhook = text
			return
		}
	case *scenario.Plugins:
		d.plugins(n, target, where)
		return
	case *scenario.PluginCall:
		if text, ok := n.Value.(string); ok {
			target.Plugin = text
			return
		}
	case *framework.User:
		if text, ok := n.Value.(string); ok {
			target.Name = text
			return
		}
	case *scenario.Denied:
		d.denied(n, target, where)
		return
	case *scenario.Manifests:
		for _, item := range n.AsList().Items {
			*target = append(*target, item.Plain())
		}
		return
	case *scenario.OneOrMore[string]:
		n = n.AsList()
	case *scenario.OneOrMore[int]:
		n = n.AsList()
	case *hook.Duration:
		d.duration(n, target, where)
		return
	case *any:
		*target = n.Plain()
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		made := reflect.New(into.Type().Elem())
		d.decode(n, made.Elem(), where)
		into.Set(made)
	case reflect.Struct:
		d.Struct(n, into, where)
	case reflect.Map:
		d.mapping(n, into, where)
	case reflect.Slice:
		d.list(n, into, where)
	default:
		d.scalar(n, into, where)
	}
}

func (d *Decoder) scalar(n *strictyaml.Node, into reflect.Value, where *Place) {
	switch into.Kind() {
	case reflect.String:
		if text, ok := n.Value.(string); ok {
			into.SetString(text)
			return
		}
		d.WrongKind(n, where, strictyaml.KindText)
	case reflect.Bool:
		if truth, ok := n.Value.(bool); ok {
			into.SetBool(truth)
			return
		}
		d.WrongKind(n, where, strictyaml.KindBool)
	case reflect.Int, reflect.Int64:
		number, ok := n.Value.(int64)
		switch {
		case !ok:
			d.WrongKind(n, where, strictyaml.KindInteger)
		case number > math.MaxInt32 || number < math.MinInt32:
			d.Fail(n, fmt.Sprintf("%s is %d; expected an integer of 32 bits", where, number), "")
		default:
			into.SetInt(number)
		}
	default:
		d.Fail(n, fmt.Sprintf("%s cannot be decoded into %s; this is a bug in admissiontest", where, into.Type()), "please report it")
	}
}

func (d *Decoder) list(n *strictyaml.Node, into reflect.Value, where *Place) {
	if n.Kind != strictyaml.KindList {
		d.WrongKind(n, where, strictyaml.KindList)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.decode(item, into.Index(i), where.Item(i))
	}
}

func (d *Decoder) mapping(n *strictyaml.Node, into reflect.Value, where *Place) {
	if n.Kind != strictyaml.KindMapping {
		d.WrongKind(n, where, strictyaml.KindMapping)
		return
	}
	if target, ok := into.Addr().Interface().(*map[string]any); ok {
		*target = n.Mapping()
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(n.Fields)))
	for i := range n.Fields {
		name := n.Fields[i].Name
		value := reflect.New(into.Type().Elem()).Elem()
		d.decode(n.Fields[i].Value, value, where.Field(name))
		into.SetMapIndex(reflect.ValueOf(name), value)
	}
}

// Struct sets a struct from a mapping.
func (d *Decoder) Struct(n *strictyaml.Node, into reflect.Value, where *Place) {
	if n.Kind != strictyaml.KindMapping {
		d.WrongKind(n, where, strictyaml.KindMapping)
		return
	}
	fields := d.Structs[into.Type()]
	unknown := false
	for i := range n.Fields {
		entry := &n.Fields[i]
		known, ok := fields.ByName[entry.Name]
		if !ok {
			unknown = true
			d.unknownField(entry, into.Type(), where)
			continue
		}
		d.decode(entry.Value, into.FieldByIndex(known.Index), where.Field(entry.Name))
	}
	if unknown {
		return // the unknown field is probably the missing one, misspelt
	}
	for _, name := range fields.Required {
		if !n.Has(name) {
			d.Fail(n, fmt.Sprintf("%s has no %s; expected one", where, name), fmt.Sprintf("add %q", name+":"))
		}
	}
}

// unknownField reports a field that a struct does not have.
func (d *Decoder) unknownField(entry *strictyaml.Field, in reflect.Type, where *Place) {
	if len(d.Errors) > MaxErrors {
		d.FailField(entry, "", "") // it is only counted
		return
	}
	fields := d.Structs[in]
	expected, hint := "a field of "+where.String(), DidYouMean(entry.Name, fields.Names)
	if hint == "" {
		expected = "one of " + strings.Join(fields.Names, ", ")
		if others := d.Structs.Elsewhere(in, entry.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: move it there", strings.Join(others, " and "))
		} else if others := d.Structs.Elsewhere(d.document(), entry.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: check the indentation", strings.Join(others, " and "))
		}
	}
	d.FailField(entry, fmt.Sprintf("unknown field %s in %s; expected %s", strictyaml.Quote(entry.Name), where, expected), hint)
}

// calls decodes Calls, for which a list is a short form.
func (d *Decoder) calls(n *strictyaml.Node, into *scenario.Calls, where *Place) {
	if n.Kind == strictyaml.KindList {
		d.list(n, reflect.ValueOf(&into.InOrder).Elem(), where)
		return
	}
	if n.Kind != strictyaml.KindMapping {
		d.Fail(n, fmt.Sprintf("%s is %s; expected a list of calls, or a mapping with inOrder, anyOrder, include or exclude", where, n.Describe()),
			"write [] to expect no call")
		return
	}
	d.Struct(n, reflect.ValueOf(into).Elem(), where)
	inOrder, anyOrder := n.Has("inOrder"), n.Has("anyOrder")
	if len(n.Fields) == 0 || inOrder && anyOrder || (inOrder || anyOrder) && n.Has("include") {
		d.Fail(n, fmt.Sprintf("%s does not say which calls; expected one of inOrder, anyOrder, include and exclude", where),
			"inOrder and anyOrder each list all the calls")
	}
}

// plugins decodes Plugins, for which a list is a short form.
func (d *Decoder) plugins(n *strictyaml.Node, into *scenario.Plugins, where *Place) {
	if n.Kind == strictyaml.KindList {
		d.list(n, reflect.ValueOf(&into.InOrder).Elem(), where)
		return
	}
	if n.Kind != strictyaml.KindMapping {
		d.Fail(n, fmt.Sprintf("%s is %s; expected a list of calls of plugins, or a mapping with inOrder and exclude", where, n.Describe()),
			"write [] to expect no call")
		return
	}
	d.Struct(n, reflect.ValueOf(into).Elem(), where)
	if len(n.Fields) == 0 {
		d.Fail(n, fmt.Sprintf("%s does not say which calls; expected inOrder or exclude", where), "")
	}
}

// denied decodes Denied, for which true, a text and a list of texts are short forms.
func (d *Decoder) denied(n *strictyaml.Node, into *scenario.Denied, where *Place) {
	switch {
	case n.Value == true:
	case n.Kind == strictyaml.KindText, n.Kind == strictyaml.KindList:
		d.list(n.AsList(), reflect.ValueOf(&into.Message).Elem(), where)
	case n.Kind == strictyaml.KindMapping:
		d.Struct(n, reflect.ValueOf(into).Elem(), where)
	default:
		d.Fail(n, fmt.Sprintf("%s is %s; expected true, a part of the message, a list of them, or a map with message, policy, binding and error", where, n.Describe()), "")
	}
}

func (d *Decoder) duration(n *strictyaml.Node, into *hook.Duration, where *Place) {
	text, ok := n.Value.(string)
	length, err := time.ParseDuration(text)
	if !ok || err != nil || length < 0 {
		hint := `write "150ms" or "2s"`
		if n.Kind == strictyaml.KindInteger && n.Raw != "0" {
			hint = fmt.Sprintf("write %q for milliseconds, or %q", n.Raw+"ms", n.Raw+"s")
		}
		d.Fail(n, fmt.Sprintf("%s is %s; expected a duration with its unit", where, n.Describe()), hint)
		return
	}
	*into = hook.Duration(length)
}
