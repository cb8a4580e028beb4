package scenario

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// place is where in a document the decoder is, "spec.when[0].then".
type place struct {
	parent *place
	name   string
	index  int // of an item, where name is empty
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

// decoder sets Go values from nodes, strictly, and collects what does not fit.
type decoder struct {
	file   string
	plans  plans
	errors []*Error
}

func (d *decoder) fail(n *node, message, hint string) {
	d.errors = append(d.errors, &Error{d.file, n.line, n.column, message, hint})
}

// wrong reports a value of another type than its place has.
func (d *decoder) wrong(n *node, where *place, expected kind) {
	hint := ""
	switch {
	case n.kind == kindNull:
		hint = "give it a value or remove the field"
	case expected == kindText && n.value != nil:
		hint = fmt.Sprintf("put it in quotes: %q", n.raw)
	case expected == kindList && n.value != nil:
		hint = fmt.Sprintf("write [%s]", n.raw)
	case n.kind == kindText && (expected == kindBool || expected == kindInteger):
		hint = "write it without quotes"
		if n.raw != "true" && n.raw != "false" && !digits(n.raw) {
			hint = ""
		}
	}
	d.fail(n, fmt.Sprintf("%s is %s; expected %s", where, n.describe(), expected), hint)
}

// document decodes a whole document.
func (d *decoder) document(root *node, into *Scenario) {
	d.structure(root, reflect.ValueOf(into).Elem(), nil)
}

// decode sets a value, whose type decides what the node may be.
func (d *decoder) decode(n *node, into reflect.Value, where *place) {
	if n.kind == kindRefused {
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *Calls:
		d.calls(n, target, where)
		return
	case *Call:
		if text, ok := n.value.(string); ok {
			target.Webhook = text
			return
		}
	case *OneOrMore[string]:
		n = n.asList()
	case *OneOrMore[int]:
		n = n.asList()
	case *hook.Duration:
		d.duration(n, target, where)
		return
	case *any:
		*target = n.plainValue()
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

// asList returns a list as it is and another value as a list of itself.
func (n *node) asList() *node {
	if n.kind == kindList || n.kind == kindNull {
		return n
	}
	return &node{kind: kindList, line: n.line, column: n.column, items: []*node{n}}
}

func (d *decoder) scalar(n *node, into reflect.Value, where *place) {
	switch into.Kind() {
	case reflect.String:
		if text, ok := n.value.(string); ok {
			into.SetString(text)
			return
		}
		d.wrong(n, where, kindText)
	case reflect.Bool:
		if truth, ok := n.value.(bool); ok {
			into.SetBool(truth)
			return
		}
		d.wrong(n, where, kindBool)
	case reflect.Int, reflect.Int64:
		number, ok := n.value.(int64)
		switch {
		case !ok:
			d.wrong(n, where, kindInteger)
		case number > math.MaxInt32 || number < math.MinInt32:
			d.fail(n, fmt.Sprintf("%s is %d; expected an integer of 32 bits", where, number), "")
		default:
			into.SetInt(number)
		}
	default:
		d.fail(n, fmt.Sprintf("%s cannot be read into %s; this is a fault of admissiontest", where, into.Type()), "report it")
	}
}

func (d *decoder) list(n *node, into reflect.Value, where *place) {
	if n.kind != kindList {
		d.wrong(n, where, kindList)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		d.decode(item, into.Index(i), where.item(i))
	}
}

func (d *decoder) mapping(n *node, into reflect.Value, where *place) {
	if n.kind != kindMapping {
		d.wrong(n, where, kindMapping)
		return
	}
	if target, ok := into.Addr().Interface().(*map[string]any); ok {
		*target = n.mapping()
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(n.fields)))
	for i := range n.fields {
		name := n.fields[i].name
		value := reflect.New(into.Type().Elem()).Elem()
		d.decode(n.fields[i].value, value, where.field(name))
		into.SetMapIndex(reflect.ValueOf(name), value)
	}
}

func (d *decoder) structure(n *node, into reflect.Value, where *place) {
	if n.kind != kindMapping {
		d.wrong(n, where, kindMapping)
		return
	}
	plan := d.plans[into.Type()]
	unknown := false
	for i := range n.fields {
		entry := &n.fields[i]
		known, ok := plan.fields[entry.name]
		if !ok {
			unknown = true
			d.unknown(entry, into.Type(), where)
			continue
		}
		d.decode(entry.value, into.FieldByIndex(known.index), where.field(entry.name))
	}
	if unknown {
		return // what seems to be missing is likely what is misspelt
	}
	for _, name := range plan.required {
		if !n.has(name) {
			d.fail(n, fmt.Sprintf("%s has no %s; expected one", where, name), fmt.Sprintf("add %q", name+":"))
		}
	}
}

// unknown reports a field that a struct does not have.
func (d *decoder) unknown(entry *field, in reflect.Type, where *place) {
	if len(d.errors) > maxErrors {
		d.errors = append(d.errors, &Error{File: d.file, Line: entry.line, Column: entry.column}) // is only counted
		return
	}
	plan := d.plans[in]
	expected, hint := "a field of "+where.String(), didYouMean(entry.name, plan.names)
	if hint == "" {
		expected = "one of " + strings.Join(plan.names, ", ")
		if others := d.plans.elsewhere(in, entry.name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: move it there", strings.Join(others, " and "))
		} else if others := d.plans.elsewhere(reflect.TypeFor[Scenario](), entry.name); len(others) > 0 {
			hint = fmt.Sprintf("it is a field of %s: check the indentation", strings.Join(others, " and "))
		}
	}
	d.errors = append(d.errors, &Error{
		d.file, entry.line, entry.column,
		fmt.Sprintf("unknown field %s in %s; expected %s", shown(entry.name), where, expected), hint,
	})
}

// calls decodes Calls, whose short form is a list.
func (d *decoder) calls(n *node, into *Calls, where *place) {
	if n.kind == kindList {
		d.list(n, reflect.ValueOf(&into.InOrder).Elem(), where)
		return
	}
	if n.kind != kindMapping {
		d.fail(n, fmt.Sprintf("%s is %s; expected a list of calls, or a mapping with inOrder, anyOrder, include or exclude", where, n.describe()),
			"write [] to expect no call")
		return
	}
	d.structure(n, reflect.ValueOf(into).Elem(), where)
	inOrder, anyOrder := n.has("inOrder"), n.has("anyOrder")
	if len(n.fields) == 0 || inOrder && anyOrder || (inOrder || anyOrder) && n.has("include") {
		d.fail(n, fmt.Sprintf("%s does not say which calls; expected one of inOrder, anyOrder, include and exclude", where),
			"inOrder and anyOrder each list all the calls")
	}
}

func (d *decoder) duration(n *node, into *hook.Duration, where *place) {
	text, ok := n.value.(string)
	length, err := time.ParseDuration(text)
	if !ok || err != nil || length < 0 {
		hint := `write "150ms" or "2s"`
		if n.kind == kindInteger && n.raw != "0" {
			hint = fmt.Sprintf("write %q for milliseconds, or %q", n.raw+"ms", n.raw+"s")
		}
		d.fail(n, fmt.Sprintf("%s is %s; expected a duration with its unit", where, n.describe()), hint)
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
