package decode

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
	"github.com/admissiontest/admissiontest/internal/fields"
	"github.com/admissiontest/admissiontest/internal/match"
)

// Enum checks that a field, if it is a text, has one of the allowed values.
func (d *Decoder) Enum(n *strictyaml.Node, name string, allowed []string) {
	value := n.Get(name)
	if value == nil || value.Kind != strictyaml.KindText || slices.Contains(allowed, value.Raw) {
		return
	}
	hint := DidYouMean(value.Raw, allowed)
	if hint == "" && len(allowed) == 1 {
		hint = fmt.Sprintf("write %q", allowed[0])
	}
	expected := "one of " + strings.Join(allowed, ", ")
	if len(allowed) == 1 {
		expected = allowed[0]
	}
	d.Fail(value, fmt.Sprintf("unknown %s %s; expected %s", name, strictyaml.Quote(value.Raw), expected), hint)
}

// Manifest checks that a Kubernetes manifest has an apiVersion and a kind.
func (d *Decoder) Manifest(n *strictyaml.Node, where *Place) {
	if n == nil || n.Kind != strictyaml.KindMapping {
		return
	}
	for _, name := range []string{"apiVersion", "kind"} {
		value := n.Get(name)
		switch {
		case value == nil:
			d.Fail(n, fmt.Sprintf("%s has no %s; expected a Kubernetes manifest", where, name), fmt.Sprintf("add %q", name+":"))
		case value.Kind != strictyaml.KindText || value.Raw == "":
			described := value.Describe()
			if d.Private {
				described = string(value.Kind)
			}
			d.Fail(value, fmt.Sprintf("%s is %s; expected a text", where.Field(name), described), "")
		}
	}
}

// Operators checks the operators in an expected value.
func (d *Decoder) Operators(n *strictyaml.Node, where *Place) {
	if n == nil || !hasOperator(n) {
		return
	}
	err := match.ValidateOperators(n.Plain())
	if err == nil {
		return
	}
	var wrong *match.OperatorError
	if !errors.As(err, &wrong) {
		d.Fail(n, fmt.Sprintf("%s cannot be matched: %v", where, err), "")
		return
	}
	holder := n.Find(wrong.Path)
	for i := range holder.Fields {
		if entry := &holder.Fields[i]; entry.Name == wrong.Operator {
			holder = &strictyaml.Node{Line: entry.Line, Column: entry.Column}
			break
		}
	}
	if wrong.Hint != "" {
		d.Fail(holder, fmt.Sprintf("unknown operator %s in %s; expected an operator of expectations", wrong.Operator, where),
			fmt.Sprintf("did you mean %q?", wrong.Hint))
		return
	}
	d.Fail(holder, fmt.Sprintf("operator %s in %s: %s", wrong.Operator, where, wrong.Problem), "")
}

// Expected checks an expected value: its operators, and that no field of it is an empty mapping, which
// every mapping matches. Items of lists and arguments of operators can be empty.
func (d *Decoder) Expected(n *strictyaml.Node, where *Place) {
	d.Operators(n, where)
	d.emptyFields(n, where)
}

func (d *Decoder) emptyFields(n *strictyaml.Node, where *Place) {
	if n == nil {
		return
	}
	for i := range n.Fields {
		entry := &n.Fields[i]
		here := where.Field(entry.Name)
		switch {
		case match.LooksLikeOperator(entry.Name):
			if entry.Name == "$exact" || entry.Name == "$json" || entry.Name == "$entries" {
				continue // {} is an empty mapping there
			}
		case entry.Value.Kind == strictyaml.KindMapping && len(entry.Value.Fields) == 0:
			d.Fail(entry.Value, fmt.Sprintf("%s is {}, which every mapping matches; expected what it must have", here),
				"write {$exact: {}} for an empty mapping, {$absent: true} for no such field, or {$absent: false} for any value")
		}
		d.emptyFields(entry.Value, here)
	}
	for i, item := range n.Items {
		d.emptyFields(item, where.Item(i))
	}
}

// Fields checks the fields of an expected value whose names can be wrong without a difference, such as a
// field that must be absent: values of a type must have them. What is the name of the value in messages.
func (d *Decoder) Fields(n *strictyaml.Node, where *Place, typ reflect.Type, what string) {
	d.assumed(n, func(one match.Assumption, at *strictyaml.Field) {
		if missing := fields.InType(typ, one.Field); missing != nil && missing.Index == len(one.Field)-1 {
			d.FailField(at, fmt.Sprintf("unknown field %s in %s; expected a field of %s, because the expectation holds without such a field", strictyaml.Quote(at.Name), where, what),
				SuggestOrList(at.Name, missing.Names, "it has no fields"))
		}
	})
}

// Keys checks the keys of an expected mapping like Fields: they must be among the known ones, in the form
// that canonical returns.
func (d *Decoder) Keys(n *strictyaml.Node, where *Place, known []string, canonical func(string) string, what string) {
	d.assumed(n, func(one match.Assumption, at *strictyaml.Field) {
		if len(one.Field) == 1 && !slices.Contains(known, canonical(at.Name)) {
			d.FailField(at, fmt.Sprintf("unknown %s %s in %s; expected one that an API server sends, because the expectation holds without it", what, strictyaml.Quote(at.Name), where),
				SuggestOrList(at.Name, known, ""))
		}
	})
}

// assumed calls a function for each assumption of a valid expectation, with the field in the file.
func (d *Decoder) assumed(n *strictyaml.Node, do func(match.Assumption, *strictyaml.Field)) {
	if n == nil || match.ValidateOperators(n.Plain()) != nil {
		return // Operators reports it
	}
	for _, one := range match.Assumptions(n.Plain()) {
		last := len(one.Written) - 1
		holder, name := n.Find(one.Written[:last]), one.Written[last]
		for i := range holder.Fields {
			if entry := &holder.Fields[i]; entry.Name == name {
				do(one, entry)
			}
		}
	}
}

// hasOperator reports whether the name of a field in a value is meant as an operator.
func hasOperator(n *strictyaml.Node) bool {
	for i := range n.Fields {
		if match.LooksLikeOperator(n.Fields[i].Name) || hasOperator(n.Fields[i].Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, hasOperator)
}
