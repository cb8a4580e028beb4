package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
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

// hasOperator reports whether the name of a field in a value is meant as an operator.
func hasOperator(n *strictyaml.Node) bool {
	for i := range n.Fields {
		if match.LooksLikeOperator(n.Fields[i].Name) || hasOperator(n.Fields[i].Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, hasOperator)
}
