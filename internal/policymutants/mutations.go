package policymutants

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// mutantsOf returns all mutants of the policies and bindings of a PolicyTest. A binding that its file does not have, which is at the
// position of its policy, has none.
func mutantsOf(s scenario.Scenario) []mutant {
	var all []mutant
	known := map[string]bool{}
	for i, manifest := range s.Spec.Given {
		at := s.ErrorIn(fmt.Sprintf("given[%d]", i), "", [2]int{1, 1}, "").Error()
		if !object.IsPolicy(manifest) || known[at] {
			continue
		}
		known[at] = true
		u := unescaped(manifest)
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		m := &mutator{index: i, whole: u.Object}
		m.value(spec, cel.Path{"spec"})
		all = append(all, m.all...)
	}
	return all
}

// mutator collects the mutants of a manifest.
type mutator struct {
	index int
	whole map[string]any
	all   []mutant
}

// add adds a mutant that has another value at a path. Nil removes what is there.
func (m *mutator) add(of mutant, path cel.Path, value any) {
	of.index, of.field = m.index, path.String()
	of.manifest = vary.With(m.whole, path, func(any) (any, bool) { return value, value != nil })
	escape(of.manifest)
	m.all = append(m.all, of)
}

// unescaped returns a copy of a manifest in which no string is written as in a scenario, where $$( is $(.
func unescaped(manifest map[string]any) unstructured.Unstructured {
	copied := runtime.DeepCopyJSON(manifest)
	replaced(copied, strings.NewReplacer("$$(", "$("))
	return unstructured.Unstructured{Object: copied}
}

// escape writes each string of a manifest as in a scenario, where $( is $$(.
func escape(manifest map[string]any) { replaced(manifest, strings.NewReplacer("$(", "$$(")) }

// replaced replaces in each string of a value, and returns the value.
func replaced(value any, by *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return by.Replace(value)
	case map[string]any:
		for name, inner := range value {
			value[name] = replaced(inner, by)
		}
	case []any:
		for i, inner := range value {
			value[i] = replaced(inner, by)
		}
	}
	return value
}

// settings are the values of fields that a mutant has instead.
func settings() map[string]map[string]string {
	return map[string]map[string]string{
		"failurePolicy":           {"Fail": "Ignore", "Ignore": "Fail"},
		"matchPolicy":             {"Equivalent": "Exact", "Exact": "Equivalent"},
		"parameterNotFoundAction": {"Deny": "Allow", "Allow": "Deny"},
		"reinvocationPolicy":      {"IfNeeded": "Never", "Never": "IfNeeded"},
	}
}

// dropped are lists and maps of which a mutant lacks an item. It is false if the mutant can also lack the only item: without that of
// the others, the API server refuses the policy.
func dropped() map[string]bool {
	return map[string]bool{
		"validations": true, "mutations": true, "resourceRules": true, "operations": true, "resources": true, "apiGroups": true, "values": true,
		"matchConditions": false, "excludeResourceRules": false, "matchExpressions": false, "matchLabels": false,
	}
}

// value collects the mutants of a value in the manifest.
func (m *mutator) value(value any, path cel.Path) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			m.field(value[name], path.Then(name), name)
		}
	case []any:
		for i, each := range value {
			m.value(each, path.Then(i))
		}
	}
}

func (m *mutator) field(value any, path cel.Path, name string) {
	items := map[any]any{} // what a mutant lacks, by its index or key
	switch value := value.(type) {
	case []any:
		for i, each := range value {
			items[i] = each
		}
	case map[string]any:
		for key := range value {
			items[key] = key
		}
	}
	if several, can := dropped()[name]; can && (len(items) > 1 || !several) {
		for _, item := range slices.SortedFunc(maps.Keys(items), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
			expression, _, _ := unstructured.NestedString(map[string]any{"": items[item]}, "", "expression")
			m.add(mutant{at: [2]int{1, 1}, old: describe(items[item]), expression: expression}, path.Then(item), nil)
		}
	}
	text, isText := value.(string)
	switch {
	case name == "validationActions":
		if list, _ := value.([]any); slices.Contains(list, any("Deny")) {
			m.add(mutant{at: [2]int{1, 1}, old: "Deny", new: "Audit"}, path, []any{"Audit"})
		}
	case isText && settings()[name][text] != "":
		other := settings()[name][text]
		m.add(mutant{at: [2]int{1, 1}, old: text, new: other}, path, other)
	case isText && name == "expression":
		m.expression(path, text)
	default:
		m.value(value, path)
	}
}

// describe returns what is dropped, in one line.
func describe(value any) string {
	fields, _ := value.(map[string]any)
	for _, name := range []string{"expression", "name", "key"} {
		if text, ok := fields[name].(string); ok {
			return strings.Join(strings.Fields(text), " ")
		}
	}
	if fields == nil {
		return fmt.Sprint(value)
	}
	text, _ := json.Marshal(fields) // it comes from JSON
	return string(text)
}

// node is a part of an expression, and what it is in, or nil.
type node struct{ is, in ast.Expr }

// nodesOf returns the parts of an expression, apart from the keys of maps.
func nodesOf(root ast.Expr) []node {
	var all []node
	ast.PreOrderVisit(ast.NavigateExpr(ast.NewAST(root, nil), root), ast.NewExprVisitor(func(part ast.Expr) {
		each, _ := part.(ast.NavigableExpr)
		switch parent, has := each.Parent(); {
		case !has:
			all = append(all, node{part, nil})
		case parent.Kind() != ast.MapKind || !slices.ContainsFunc(parent.AsMap().Entries(), func(entry ast.EntryExpr) bool { return entry.AsMapEntry().Key().ID() == part.ID() }):
			all = append(all, node{part, parent})
		}
	}))
	return all
}

// expression collects the mutants of an expression. Each is made of a new tree, because a change leaves the tree changed.
func (m *mutator) expression(path cel.Path, text string) {
	root, info, err := cel.Parse(text)
	if err != nil || strings.Contains(text, "`") { // cel.Text does not write these identifiers as they are
		return
	}
	seen := map[string]bool{textOf(root): true}
	for i, n := range nodesOf(root) {
		for j := range variants(n) {
			changed, _, _ := cel.Parse(text)
			target := nodesOf(changed)[i]
			other := variants(target)[j]
			of := mutant{at: cel.Start(n.is, info), old: textOf(n.is), new: textOf(other.is), expression: text, part: textOf(n.is)}
			switch {
			case other.operator != "":
				of.at, of.old, of.new = cel.Operator(n.is, info), symbol(n.is.AsCall().FunctionName()), symbol(other.operator)
			case other.without != nil:
				of.at, of.old, of.new = cel.Start(other.without, info), other.name+textOf(other.without), ""
			}
			target.is.SetKindCase(other.is)
			if whole := textOf(changed); !seen[whole] {
				seen[whole] = true
				m.add(of, path, whole)
			}
		}
	}
}

// textOf returns a part of an expression as text.
func textOf(e ast.Expr) string {
	text, err := cel.Text(e)
	if err != nil {
		return "?" // which does not parse either, so that the API server refuses the mutant
	}
	return text
}

func symbol(operator string) string { return strings.Trim(operator, "_") }

// swapped are operators and functions, with what a mutant has instead.
func swapped() map[string]string {
	return map[string]string{
		operators.LogicalAnd: operators.LogicalOr, operators.LogicalOr: operators.LogicalAnd,
		operators.Less: operators.LessEquals, operators.LessEquals: operators.Less,
		operators.Greater: operators.GreaterEquals, operators.GreaterEquals: operators.Greater,
		operators.Equals: operators.NotEquals, operators.NotEquals: operators.Equals,
		"all": "exists", "exists": "all", "startsWith": "contains", "endsWith": "contains",
		"isLessThan": "isGreaterThan", "isGreaterThan": "isLessThan",
	}
}

// variant is what a mutant has instead of a part.
type variant struct {
	is ast.Expr
	// without is what is dropped, or nil, and name its name if it is a field. Operator is the operator that it has instead, or "".
	without  ast.Expr
	name     string
	operator string
}

// variants returns what mutants have instead of a part.
func variants(n node) []variant {
	f := ast.NewExprFactory()
	switch n.is.Kind() {
	case ast.CallKind:
		return ofCall(n)
	case ast.LiteralKind:
		return ofLiteral(n)
	case ast.ListKind:
		return ofList(n.is)
	case ast.StructKind:
		return ofStruct(n.is)
	case ast.IdentKind:
		if n.is.AsIdent() == "oldObject" {
			return []variant{{is: f.NewIdent(n.is.ID(), "object")}}
		}
	}
	return nil
}

func ofCall(n node) []variant {
	f, call := ast.NewExprFactory(), n.is.AsCall()
	name, args := call.FunctionName(), call.Args()
	var all []variant
	if other := swapped()[name]; other != "" && call.IsMemberFunction() {
		all = append(all, variant{is: f.NewMemberCall(n.is.ID(), other, call.Target(), args...)})
	} else if other != "" {
		all = append(all, variant{is: f.NewCall(n.is.ID(), other, args...), operator: other})
	}
	switch {
	case name == operators.LogicalAnd || name == operators.LogicalOr || name == operators.Add:
		all = append(all, variant{is: args[0], without: args[1]}, variant{is: args[1], without: args[0]})
	case name == operators.LogicalNot:
		all = append(all, variant{is: args[0]})
	case name == operators.Conditional:
		all = append(all, variant{is: f.NewCall(n.is.ID(), name, args[0], args[2], args[1])}, variant{is: args[1]}, variant{is: args[2]})
	case name == "has" && !isCall(n.in, operators.LogicalAnd):
		all = append(all, variant{is: f.NewLiteral(n.is.ID(), types.True)})
	case isCall(n.in, operators.LogicalAnd) || isCall(n.in, operators.LogicalOr) || n.in == nil:
		if len(all) == 0 && (name == operators.In || call.IsMemberFunction() && name != "orValue") {
			all = append(all, variant{is: f.NewCall(n.is.ID(), operators.LogicalNot, f.CopyExpr(n.is))})
		}
	}
	return all
}

func isCall(e ast.Expr, name string) bool {
	return e != nil && e.Kind() == ast.CallKind && e.AsCall().FunctionName() == name
}

func ofLiteral(n node) []variant {
	f := ast.NewExprFactory()
	switch value := n.is.AsLiteral().(type) {
	case types.Bool:
		return []variant{{is: f.NewLiteral(n.is.ID(), !value)}}
	case types.Int:
		return []variant{{is: f.NewLiteral(n.is.ID(), value+1)}, {is: f.NewLiteral(n.is.ID(), value-1)}}
	case types.String:
		if isCall(n.in, operators.OptSelect) || isCall(n.in, operators.Index) || isCall(n.in, operators.OptIndex) {
			return nil // another key is mostly an error
		}
		other := value + "x"
		if n.in != nil && n.in.Kind() == ast.StructKind && n.in.AsStruct().TypeName() == "JSONPatch" {
			other = map[types.String]types.String{"add": "replace", "replace": "add"}[value]
		}
		if other != "" {
			return []variant{{is: f.NewLiteral(n.is.ID(), other)}}
		}
	}
	return nil
}

func ofList(e ast.Expr) []variant {
	elements := e.AsList().Elements()
	if len(elements) < 2 || len(e.AsList().OptionalIndices()) > 0 {
		return nil
	}
	var all []variant
	for i, each := range elements {
		all = append(all, variant{is: ast.NewExprFactory().NewList(e.ID(), slices.Delete(slices.Clone(elements), i, i+1), nil), without: each})
	}
	return all
}

func ofStruct(e ast.Expr) []variant {
	fields := e.AsStruct().Fields()
	if len(fields) < 2 && e.AsStruct().TypeName() != "Object" || e.AsStruct().TypeName() == "JSONPatch" {
		return nil // without its fields, an inner object or an operation is another one
	}
	var all []variant
	for i, each := range fields {
		field := each.AsStructField()
		without := ast.NewExprFactory().NewStruct(e.ID(), e.AsStruct().TypeName(), slices.Delete(slices.Clone(fields), i, i+1))
		all = append(all, variant{is: without, without: field.Value(), name: field.Name() + ": "})
	}
	return all
}
