package scenario

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// place is the path to a value in a document, "spec.when[0].then".
type place struct {
	parent *place
	name   string
	index  int // of an item, if name is empty
}

func (p *place) field(name string) *place { return &place{parent: p, name: name} }
func (p *place) item(index int) *place    { return &place{parent: p, index: index} }

func (p *place) String() string {
	switch {
	case p == nil:
		return "the document"
	case p.name == "":
		return fmt.Sprintf("%s[%d]", p.parent, p.index)
	case p.parent == nil:
		return p.name
	case strings.Contains(p.name, "."):
		return fmt.Sprintf("%s[%q]", p.parent, p.name)
	default:
		return p.parent.String() + "." + p.name
	}
}

// decoder sets Go values from nodes, strictly, and collects errors.
type decoder struct {
	file    string
	structs allStructs
	// root is the type of the document; nil means Scenario.
	root   reflect.Type
	errors []*Error
}

func (d *decoder) fail(n *strictyaml.Node, message, hint string) {
	d.errors = append(d.errors, &Error{d.file, n.Line, n.Column, message, hint})
}

// failField reports an error at the name of a field.
func (d *decoder) failField(entry *strictyaml.Field, message, hint string) {
	d.errors = append(d.errors, &Error{d.file, entry.Line, entry.Column, message, hint})
}

// wrongKind reports a value of another kind than expected.
func (d *decoder) wrongKind(n *strictyaml.Node, where *place, expected strictyaml.Kind) {
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
	d.fail(n, fmt.Sprintf("%s is %s; expected %s", where, n.Describe(), expected), hint)
}

// document returns the type of the document.
func (d *decoder) document() reflect.Type {
	if d.root != nil {
		return d.root
	}
	return reflect.TypeFor[Scenario]()
}

// decode sets a value. The value's type decides which nodes are allowed.
func (d *decoder) decode(n *strictyaml.Node, into reflect.Value, where *place) {
	if n.Kind == strictyaml.KindRefused {
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *Calls:
		d.calls(n, target, where)
		return
	case *Call:
		if text, ok := n.Value.(string); ok {
			target.Webhook = text
			return
		}
	case *Plugins:
		d.plugins(n, target, where)
		return
	case *PluginCall:
		if text, ok := n.Value.(string); ok {
			target.Plugin = text
			return
		}
	case *framework.User:
		if text, ok := n.Value.(string); ok {
			target.Name = text
			return
		}
	case *Denied:
		d.denied(n, target, where)
		return
	case *Manifests:
		for _, item := range n.AsList().Items {
			*target = append(*target, item.Plain())
		}
		return
	case *OneOrMore[string]:
		n = n.AsList()
	case *OneOrMore[int]:
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
		d.structure(n, into, where)
	case reflect.Map:
		d.mapping(n, into, where)
	case reflect.Slice:
		d.list(n, into, where)
	default:
		d.scalar(n, into, where)
	}
}

func (d *decoder) scalar(n *strictyaml.Node, into reflect.Value, where *place) {
	switch into.Kind() {
	case reflect.String:
		if text, ok := n.Value.(string); ok {
			into.SetString(text)
			return
		}
		d.wrongKind(n, where, strictyaml.KindText)
	case reflect.Bool:
		if truth, ok := n.Value.(bool); ok {
			into.SetBool(truth)
			return
		}
		d.wrongKind(n, where, strictyaml.KindBool)
	case reflect.Int, reflect.Int64:
		number, ok := n.Value.(int64)
		switch {
		case !ok:
			d.wrongKind(n, where, strictyaml.KindInteger)
		case number > math.MaxInt32 || number < math.MinInt32:
			d.fail(n, fmt.Sprintf("%s is %d; expected an integer of 32 bits", where, number), "")
		default:
			into.SetInt(number)
		}
	default:
		d.fail(n, fmt.Sprintf("%s cannot be decoded into %s; this is a bug in admissiontest", where, into.Type()), "please report it")
	}
}

func (d *decoder) list(n *strictyaml.Node, into reflect.Value, where *place) {
	if n.Kind != strictyaml.KindList {
		d.wrongKind(n, where, strictyaml.KindList)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.decode(item, into.Index(i), where.item(i))
	}
}

func (d *decoder) mapping(n *strictyaml.Node, into reflect.Value, where *place) {
	if n.Kind != strictyaml.KindMapping {
		d.wrongKind(n, where, strictyaml.KindMapping)
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
		d.decode(n.Fields[i].Value, value, where.field(name))
		into.SetMapIndex(reflect.ValueOf(name), value)
	}
}

func (d *decoder) structure(n *strictyaml.Node, into reflect.Value, where *place) {
	if n.Kind != strictyaml.KindMapping {
		d.wrongKind(n, where, strictyaml.KindMapping)
		return
	}
	fields := d.structs[into.Type()]
	unknown := false
	for i := range n.Fields {
		entry := &n.Fields[i]
		known, ok := fields.byName[entry.Name]
		if !ok {
			unknown = true
			d.unknownField(entry, into.Type(), where)
			continue
		}
		d.decode(entry.Value, into.FieldByIndex(known.index), where.field(entry.Name))
	}
	if unknown {
		return // the unknown field is probably the missing one, misspelt
	}
	for _, name := range fields.required {
		if !n.Has(name) {
			d.fail(n, fmt.Sprintf("%s has no %s; expected one", where, name), fmt.Sprintf("add %q", name+":"))
		}
	}
}

// unknownField reports a field that a struct does not have.
func (d *decoder) unknownField(entry *strictyaml.Field, in reflect.Type, where *place) {
	if len(d.errors) > maxErrors {
		d.failField(entry, "", "") // it is only counted
		return
	}
	fields := d.structs[in]
	expected, hint := "a field of "+where.String(), didYouMean(entry.Name, fields.names)
	if hint == "" {
		expected = "one of " + strings.Join(fields.names, ", ")
		if others := d.structs.elsewhere(in, entry.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: move it there", strings.Join(others, " and "))
		} else if others := d.structs.elsewhere(d.document(), entry.Name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: check the indentation", strings.Join(others, " and "))
		}
	}
	d.failField(entry, fmt.Sprintf("unknown field %s in %s; expected %s", strictyaml.Quote(entry.Name), where, expected), hint)
}

// calls decodes Calls, for which a list is a short form.
func (d *decoder) calls(n *strictyaml.Node, into *Calls, where *place) {
	if n.Kind == strictyaml.KindList {
		d.list(n, reflect.ValueOf(&into.InOrder).Elem(), where)
		return
	}
	if n.Kind != strictyaml.KindMapping {
		d.fail(n, fmt.Sprintf("%s is %s; expected a list of calls, or a mapping with inOrder, anyOrder, include or exclude", where, n.Describe()),
			"write [] to expect no call")
		return
	}
	d.structure(n, reflect.ValueOf(into).Elem(), where)
	inOrder, anyOrder := n.Has("inOrder"), n.Has("anyOrder")
	if len(n.Fields) == 0 || inOrder && anyOrder || (inOrder || anyOrder) && n.Has("include") {
		d.fail(n, fmt.Sprintf("%s does not say which calls; expected one of inOrder, anyOrder, include and exclude", where),
			"inOrder and anyOrder each list all the calls")
	}
}

// plugins decodes Plugins, for which a list is a short form.
func (d *decoder) plugins(n *strictyaml.Node, into *Plugins, where *place) {
	if n.Kind == strictyaml.KindList {
		d.list(n, reflect.ValueOf(&into.InOrder).Elem(), where)
		return
	}
	if n.Kind != strictyaml.KindMapping {
		d.fail(n, fmt.Sprintf("%s is %s; expected a list of calls of plugins, or a mapping with inOrder and exclude", where, n.Describe()),
			"write [] to expect no call")
		return
	}
	d.structure(n, reflect.ValueOf(into).Elem(), where)
	if len(n.Fields) == 0 {
		d.fail(n, fmt.Sprintf("%s does not say which calls; expected inOrder or exclude", where), "")
	}
}

// denied decodes Denied, for which true, a text and a list of texts are short forms.
func (d *decoder) denied(n *strictyaml.Node, into *Denied, where *place) {
	switch {
	case n.Value == true:
	case n.Kind == strictyaml.KindText, n.Kind == strictyaml.KindList:
		d.list(n.AsList(), reflect.ValueOf(&into.Message).Elem(), where)
	case n.Kind == strictyaml.KindMapping:
		d.structure(n, reflect.ValueOf(into).Elem(), where)
	default:
		d.fail(n, fmt.Sprintf("%s is %s; expected true, a part of the message, a list of them, or a mapping with message, policy and binding", where, n.Describe()), "")
	}
}

func (d *decoder) duration(n *strictyaml.Node, into *hook.Duration, where *place) {
	text, ok := n.Value.(string)
	length, err := time.ParseDuration(text)
	if !ok || err != nil || length < 0 {
		hint := `write "150ms" or "2s"`
		if n.Kind == strictyaml.KindInteger && n.Raw != "0" {
			hint = fmt.Sprintf("write %q for milliseconds, or %q", n.Raw+"ms", n.Raw+"s")
		}
		d.fail(n, fmt.Sprintf("%s is %s; expected a duration with its unit", where, n.Describe()), hint)
		return
	}
	*into = hook.Duration(length)
}

// quote returns names for a message: "a", "b" and "c".
func quote(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	if last := len(quoted) - 1; last > 0 {
		return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
	}
	return strings.Join(quoted, "")
}
