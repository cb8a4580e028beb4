package cel

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	apiserver "k8s.io/apiserver/pkg/cel"
)

// Read is one access in an expression: the paths that it may be about, such as the containers of a Pod and of a
// Deployment.
type Read struct {
	Paths []Path
	// Whole is true if everything below may be read.
	Whole bool
	// In is true for 'x' in PATH: the last step is a key of a map, or a string in a list.
	In bool
}

// mapped ends the path of a list that has, for each element of another one, what the path before it is.
type mapped struct{}

// mostPaths limits the paths that one part of an expression may be about.
const mostPaths = 64

// Reader finds what the expressions of a policy read. Make it with [NewReader].
type Reader struct {
	// Reads are the accesses.
	Reads []Read
	// Unknown is true if an expression does not parse, so that anything may be read.
	Unknown bool
	// Lost are parts of which a name is read, and whose paths are not known.
	Lost []string

	roots     []string          // object and oldObject, or one of them
	variables map[string]string // the expressions, by name
	// values are the paths of the variables that were read; nil while one is read.
	values map[string][]Path
}

// NewReader returns a Reader that has read expressions of a policy. Roots are the variables of which it notes what is read: object,
// oldObject, params. Variables are the expressions of the variables of the policy, by name.
func NewReader(variables map[string]string, expressions []string, roots ...string) *Reader {
	r := &Reader{roots: roots, variables: variables, values: map[string][]Path{}}
	for _, text := range expressions {
		root, _, err := Parse(text)
		if err != nil {
			r.Unknown, r.Lost = true, append(r.Lost, text)
			continue
		}
		r.value(root, nil)
	}
	return r
}

// scope has the paths of the variables of macros, the inner ones last.
type scope []bound

type bound struct {
	name  string
	paths []Path
}

// value returns the paths that a part of an expression may be, and notes what is read.
func (r *Reader) value(part ast.Expr, in scope) []Path {
	switch part.Kind() {
	case ast.IdentKind:
		name := part.AsIdent()
		for _, b := range slices.Backward(in) {
			if b.name == name {
				return b.paths
			}
		}
		if slices.Contains(r.roots, name) {
			if name == "params" {
				return []Path{{param{}}}
			}
			return []Path{{}}
		}
	case ast.SelectKind:
		selected := part.AsSelect()
		return r.field(selected.Operand(), selected.FieldName(), in)
	case ast.CallKind:
		return r.call(part.AsCall(), in)
	case ast.ListKind:
		for _, element := range part.AsList().Elements() {
			r.whole(element, in)
		}
	case ast.MapKind:
		for _, entry := range part.AsMap().Entries() {
			r.whole(entry.AsMapEntry().Key(), in)
			r.whole(entry.AsMapEntry().Value(), in)
		}
	case ast.StructKind:
		for _, field := range part.AsStruct().Fields() {
			r.whole(field.AsStructField().Value(), in)
		}
	}
	return nil
}

// whole notes that everything is read that a part of an expression is.
func (r *Reader) whole(part ast.Expr, in scope) {
	r.note(r.value(part, in), true)
}

// note notes that paths are read.
func (r *Reader) note(paths []Path, whole bool) {
	var noted []Path
	for _, path := range paths {
		noted = append(noted, unmapped(path))
	}
	if len(noted) > 0 {
		r.Reads = append(r.Reads, Read{Paths: noted, Whole: whole})
	}
}

func unmapped(path Path) Path {
	if n := len(path); n > 0 && path[n-1] == any(mapped{}) {
		return path[:n-1]
	}
	return path
}

// field returns the paths of a field of an operand.
func (r *Reader) field(operand ast.Expr, name string, in scope) []Path {
	if operand.Kind() == ast.IdentKind && operand.AsIdent() == "variables" {
		return r.variable(name)
	}
	if unescaped, ok := apiserver.Unescape(name); ok {
		name = unescaped
	}
	return r.named(operand, name, in)
}

// named returns the paths of what an operand has under a name.
func (r *Reader) named(operand ast.Expr, name string, in scope) []Path {
	paths := r.value(operand, in)
	if len(paths) == 0 && !in.declared(operand) {
		text, err := Text(operand)
		if err != nil {
			text = err.Error()
		}
		r.Lost = append(r.Lost, text)
	}
	return r.step(paths, name)
}

// declared reports whether a part of an expression belongs to a variable whose fields every API server knows: it refuses
// a policy that misspells one.
func (s scope) declared(part ast.Expr) bool {
	switch part.Kind() {
	case ast.IdentKind:
		name := part.AsIdent()
		return slices.Contains([]string{"request", "namespaceObject", "authorizer"}, name) &&
			!slices.ContainsFunc(s, func(b bound) bool { return b.name == name })
	case ast.SelectKind:
		return s.declared(part.AsSelect().Operand())
	case ast.CallKind:
		return slices.Contains([]string{operators.OptSelect, operators.Index, operators.OptIndex}, part.AsCall().FunctionName()) && s.declared(part.AsCall().Args()[0])
	}
	return false
}

// step returns paths with one more step, and notes that they are read.
func (r *Reader) step(paths []Path, step any) []Path {
	var longer []Path
	for _, path := range paths[:min(len(paths), mostPaths)] {
		if element := unmapped(path); len(element) < len(path) {
			longer = append(longer, element)
			continue
		}
		longer = append(longer, append(slices.Clone(path), step))
	}
	r.note(longer, false)
	return longer
}

// variable returns the paths that a variable of the policy may be.
func (r *Reader) variable(name string) []Path {
	paths, known := r.values[name]
	if !known {
		r.values[name] = nil
		lost := r.Lost // what the variable itself reads belongs to its own expression
		if root, _, err := Parse(r.variables[name]); err == nil {
			paths, r.Lost = r.value(root, nil), lost
		} else {
			r.Unknown, r.Lost = true, append(lost, "variables."+name)
		}
		r.values[name] = paths
	}
	return paths
}

// call returns the paths that a call may return.
func (r *Reader) call(call ast.CallExpr, in scope) []Path {
	args := call.Args()
	if call.IsMemberFunction() {
		return r.member(call, in)
	}
	switch name := call.FunctionName(); {
	case name == operators.OptSelect && len(args) == 2:
		if field, ok := Literal(args[1]); ok {
			return r.field(args[0], field, in)
		}
	case name == operators.In && len(args) == 2:
		r.value(args[0], in)
		if args[1].Kind() == ast.ListKind {
			r.value(args[1], in)
		} else if key, ok := Literal(args[0]); !ok {
			r.step(r.value(args[1], in), Each{})
		} else if len(r.named(args[1], key, in)) > 0 {
			r.Reads[len(r.Reads)-1].In = true
		}
		return nil
	case (name == operators.Index || name == operators.OptIndex) && len(args) == 2:
		r.value(args[1], in)
		if key, ok := Literal(args[1]); ok {
			return r.named(args[0], key, in)
		}
		return r.step(r.value(args[0], in), Each{})
	case name == operators.Conditional && len(args) == 3:
		r.value(args[0], in)
		return slices.Concat(r.value(args[1], in), r.value(args[2], in))
	case name == operators.Add && len(args) == 2:
		return slices.Concat(r.value(args[0], in), r.value(args[1], in))
	case (name == "dyn" || name == "has" || name == "optional.of" || name == "optional.ofNonZeroValue") && len(args) == 1:
		return r.value(args[0], in)
	case slices.Contains(comparisons(), name):
		for _, arg := range args {
			r.value(arg, in)
		}
		return nil
	}
	for _, arg := range args {
		r.whole(arg, in)
	}
	return nil
}

// comparisons are functions that have no error whatever is absent in their arguments.
func comparisons() []string {
	return []string{operators.Equals, operators.NotEquals, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, "size", "type", "string"}
}

// member returns the paths that the call of a function of a value may return.
func (r *Reader) member(call ast.CallExpr, in scope) []Path {
	target, args := r.value(call.Target(), in), call.Args()
	if len(args) >= 2 && args[0].Kind() == ast.IdentKind && slices.Contains(macros(), call.FunctionName()) {
		return r.macro(call, target, in)
	}
	var alternative []Path
	for _, arg := range args {
		alternative = append(alternative, r.value(arg, in)...)
	}
	switch call.FunctionName() {
	case "flatten":
		var lists []Path
		for _, path := range target {
			lists = append(lists, unmapped(path))
		}
		return lists
	case "orValue", "or", "value", "reverse", "sort", "distinct", "first", "last", "slice":
		return slices.Concat(target, alternative)
	}
	return nil
}

// macros are the macros whose first argument is the name of a variable.
func macros() []string {
	return []string{"all", "exists", "exists_one", "existsOne", "map", "filter", "optMap", "optFlatMap", "transformList", "transformMap", "transformMapEntry", "sortBy"}
}

// macro returns the paths that a macro may return, such as map and filter.
func (r *Reader) macro(call ast.CallExpr, target []Path, in scope) []Path {
	args := call.Args()
	name, elements := call.FunctionName(), target
	if name != "optMap" && name != "optFlatMap" {
		elements = r.step(target, Each{})
	}
	inner := append(slices.Clone(in), bound{args[0].AsIdent(), elements})
	body := args[1:]
	if len(args) >= 3 && args[1].Kind() == ast.IdentKind { // the index or key, and the element
		inner[len(inner)-1].paths = nil
		inner = append(inner, bound{args[1].AsIdent(), elements})
		body = args[2:]
	}
	var last []Path
	for _, part := range body {
		last = r.value(part, inner)
	}
	switch name {
	case "filter":
		return target
	case "map":
		var lists []Path
		for _, path := range last {
			lists = append(lists, append(slices.Clone(path), any(mapped{})))
		}
		return lists
	case "optMap", "optFlatMap":
		return last
	}
	return nil
}
