package policycoverage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/admissiontest/admissiontest/internal/celtext"
)

// part is a boolean in an expression of a policy that decides something: a whole validation or condition, an operand of && or
// ||, the condition of ?:, what a macro asks of each element, or whether an optional value is present.
type part struct {
	// field is the expression in the policy, at the line and column in it, from 1.
	field string
	at    [2]int
	text  string
	// id is that of its node in the parsed expression.
	id int64
	// whole is true for a whole validation or matchCondition.
	whole bool
	// parent is the index of the part that it is in, or -1. Chain is && or || if the parent is just this chain, and last is true
	// for the last operand of one.
	parent int
	chain  string
	last   bool
	// context is what must hold so that it is evaluated, the outer steps first.
	context []step
	// owner is the variable in whose expression it is, or "".
	owner string
	// unknown says why it cannot be observed, or "".
	unknown string
}

// step is one step on the way to a part: a condition with its value, or a macro that gives the variables their values.
type step struct {
	text      string // the condition, or the list, map or optional value
	want      bool
	variables string // "" for a condition
	optional  bool
}

// inside returns an expression that is false if the steps lead to where the inner expression is false, for one element at
// least. Otherwise it is true, or an error.
func inside(context []step, inner string) string {
	for _, s := range slices.Backward(context) {
		switch {
		case s.optional:
			inner = fmt.Sprintf("(%s).optMap(%s, %s).orValue(true)", s.text, s.variables, inner)
		case s.variables != "":
			inner = fmt.Sprintf("(%s).all(%s, %s)", s.text, s.variables, inner)
		case s.want:
			inner = fmt.Sprintf("!(%s) || (%s)", s.text, inner)
		default:
			inner = fmt.Sprintf("(%s) || (%s)", s.text, inner)
		}
	}
	return inner
}

// witness returns an expression that is false only if the part is evaluated and has a value.
func (p part) witness(value bool) string {
	if value {
		return inside(p.context, "!("+p.text+")")
	}
	return inside(p.context, "("+p.text+") || false")
}

// reference is the use of a variable in an expression, where the context leads.
type reference struct {
	variable, owner string
	context         []step
}

// reader collects the parts of the expressions of a policy.
type reader struct {
	parts      []part
	references []reference
	// unread are the fields of expressions that do not parse.
	unread []string

	field, owner string
	info         *ast.SourceInfo
}

// read collects the parts of one expression. Whole is true if it is boolean itself.
func (r *reader) read(field, owner, text string, whole bool, context []step) {
	root, info, err := celtext.Parse(text)
	if err != nil || strings.Contains(text, "`") { // Text does not write these identifiers as they are
		r.unread = append(r.unread, field)
		return
	}
	r.field, r.owner, r.info = field, owner, info
	parent := -1
	if whole {
		parent = r.add(root, context, -1, "")
		r.parts[parent].whole = true
	}
	r.walk(root, context, parent)
}

// add adds a part and returns its index. A constant is no part: then it is the index of the parent.
func (r *reader) add(e ast.Expr, context []step, parent int, chain string) int {
	if e.Kind() == ast.LiteralKind && parent >= 0 {
		return parent
	}
	p := part{field: r.field, at: celtext.Start(e, r.info), text: textOf(e), id: e.ID(), parent: parent, chain: chain, context: context, owner: r.owner}
	r.parts = append(r.parts, p)
	return len(r.parts) - 1
}

// textOf returns a part as text. What cannot be written does not parse either, so that it is not observed.
func textOf(e ast.Expr) string {
	text, err := celtext.Text(e)
	if err != nil {
		return "?"
	}
	return text
}

// walk collects the parts in an expression, which is the part parent itself or in it.
func (r *reader) walk(e ast.Expr, context []step, parent int) {
	is := parent >= 0 && r.parts[parent].id == e.ID()
	switch e.Kind() {
	case ast.CallKind:
		r.call(e, context, parent, is)
	case ast.SelectKind:
		operand := e.AsSelect().Operand()
		if operand.Kind() == ast.IdentKind && operand.AsIdent() == "variables" {
			r.references = append(r.references, reference{e.AsSelect().FieldName(), r.owner, context})
			return
		}
		r.walk(operand, context, parent)
	case ast.ListKind:
		for _, each := range e.AsList().Elements() {
			r.walk(each, context, parent)
		}
	case ast.MapKind:
		for _, each := range e.AsMap().Entries() {
			r.walk(each.AsMapEntry().Key(), context, parent)
			r.walk(each.AsMapEntry().Value(), context, parent)
		}
	case ast.StructKind:
		for _, each := range e.AsStruct().Fields() {
			r.walk(each.AsStructField().Value(), context, parent)
		}
	}
}

func (r *reader) call(e ast.Expr, context []step, parent int, is bool) {
	call := e.AsCall()
	args := call.Args()
	switch name := call.FunctionName(); {
	case name == operators.LogicalAnd || name == operators.LogicalOr:
		r.chain(e, context, parent, is)
	case name == operators.Conditional && len(args) == 3:
		condition := r.add(args[0], context, parent, "")
		r.walk(args[0], context, condition)
		for i, branch := range args[1:] {
			inner, at := with(context, step{text: textOf(args[0]), want: i == 0}), parent
			if is {
				at = r.add(branch, inner, parent, "")
			}
			r.walk(branch, inner, at)
		}
	case call.IsMemberFunction() && len(args) >= 2 && args[0].Kind() == ast.IdentKind:
		r.macro(call, context, parent)
	case call.IsMemberFunction() && name == "orValue":
		p := r.add(e, context, parent, "")
		r.parts[p].text = textOf(call.Target()) + ".hasValue()"
		r.walk(call.Target(), context, parent)
		r.walk(args[0], with(context, step{text: r.parts[p].text}), parent)
	default:
		if call.IsMemberFunction() {
			r.walk(call.Target(), context, parent)
		}
		for _, arg := range args {
			r.walk(arg, context, parent)
		}
	}
}

// chain collects the operands of && or ||, each of which is evaluated only if the ones before it did not decide.
func (r *reader) chain(e ast.Expr, context []step, parent int, is bool) {
	name, chain := e.AsCall().FunctionName(), ""
	if is {
		chain = strings.Trim(name, "_")
	}
	all := operands(e, name)
	for i, operand := range all {
		at := r.add(operand, context, parent, chain)
		if i == len(all)-1 && at != parent {
			r.parts[at].last = true
		}
		r.walk(operand, context, at)
		context = with(context, step{text: textOf(operand), want: name == operators.LogicalAnd})
	}
}

// operands returns the operands of nested calls of the same operator, from the left to the right.
func operands(e ast.Expr, operator string) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator {
		return []ast.Expr{e}
	}
	return slices.Concat(operands(e.AsCall().Args()[0], operator), operands(e.AsCall().Args()[1], operator))
}

// macro collects the parts of a macro such as all, exists, filter and map, and of what it is applied to.
func (r *reader) macro(call ast.CallExpr, context []step, parent int) {
	args := call.Args()
	r.walk(call.Target(), context, parent)
	name, variables, body := call.FunctionName(), args[0].AsIdent(), args[1:]
	if len(body) > 1 && body[0].Kind() == ast.IdentKind && slices.Contains([]string{"all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"}, name) {
		variables, body = variables+", "+body[0].AsIdent(), body[1:]
	}
	inner := with(context, step{text: textOf(call.Target()), variables: variables, optional: strings.HasPrefix(name, "opt")})
	asks := slices.Contains([]string{"all", "exists", "exists_one", "existsOne", "filter"}, name) || len(body) == 2
	for i, each := range body {
		at := parent
		if i == 0 && asks {
			at = r.add(each, inner, parent, "")
		}
		r.walk(each, inner, at)
		if i == 0 && asks {
			inner = with(inner, step{text: textOf(each), want: true}) // for the transformation after it
		}
	}
}

func with(context []step, s step) []step { return append(slices.Clone(context), s) }

// names reports whether an expression uses a variable, or a type if the variable is "".
func names(text, variable string) bool {
	root, _, err := celtext.Parse(text)
	if err != nil {
		return true
	}
	found := false
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			found = found || e.AsIdent() == variable
		case ast.StructKind:
			found = found || variable == ""
		}
	}))
	return found
}
