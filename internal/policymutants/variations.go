package policymutants

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/cel"
)

// words are what expressions name.
type words struct {
	// children are the fields and keys of each field, or of the object itself if that is "". The children of items are what a variable has.
	children map[string]map[string]bool
	// names are all fields and keys, and changed what the part names that a mutant changes: fields, keys, texts and numbers.
	names, changed map[string]bool
	// compared are the constants in a call with a field: what it is compared with, or its default.
	compared map[string][]any
	texts    []string
	numbers  []int64
}

// items is the field, in words.children, of what a variable of a macro has.
const items = "[]"

// wordsOf returns the words of expressions, and of a part that a mutant changes, before and after.
func wordsOf(before, after string, expressions ...string) words {
	w := words{children: map[string]map[string]bool{}, names: map[string]bool{}, compared: map[string][]any{}}
	w.add(before)
	w.add(after)
	w.changed = maps.Clone(w.names)
	for _, text := range w.texts {
		w.changed[text] = true
	}
	for _, number := range w.numbers {
		w.changed[strconv.FormatInt(number, 10)] = true
	}
	for _, text := range expressions {
		w.add(text)
	}
	w.texts = slices.DeleteFunc(w.texts, func(text string) bool { return w.names[text] || strings.Contains(text, "$") }) // a key, or a placeholder
	slices.Sort(w.texts)
	slices.Sort(w.numbers)
	w.texts, w.numbers = slices.Compact(w.texts), slices.Compact(w.numbers)
	return w
}

func (w *words) add(text string) {
	root, _, err := cel.Parse(text)
	if err != nil {
		return // an operator
	}
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			w.name(e.AsSelect().FieldName(), e.AsSelect().Operand())
		case ast.CallKind:
			w.call(e.AsCall())
		case ast.LiteralKind:
			switch value := e.AsLiteral().(type) {
			case types.String:
				w.texts = append(w.texts, string(value))
			case types.Int:
				w.numbers = append(w.numbers, int64(value))
			}
		}
	}))
}

func (w *words) call(call ast.CallExpr) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.OptSelect, operators.Index, operators.OptIndex:
		w.key(args[1], args[0])
		return
	case operators.In:
		w.key(args[0], args[1])
	}
	if call.IsMemberFunction() {
		args = append(slices.Clone(args), call.Target())
	}
	for _, field := range args {
		if name, known := lastOf(field); known {
			for _, each := range args {
				w.compared[name] = append(w.compared[name], constantsIn(each)...)
			}
		}
	}
}

// constantsIn returns the value of a constant, or of those in a list.
func constantsIn(e ast.Expr) []any {
	switch e.Kind() {
	case ast.ListKind:
		var all []any
		for _, each := range e.AsList().Elements() {
			all = append(all, constantsIn(each)...)
		}
		return all
	case ast.LiteralKind:
		switch value := e.AsLiteral().(type) {
		case types.String:
			return []any{string(value)}
		case types.Int:
			return []any{int64(value)}
		case types.Bool:
			return []any{bool(value)}
		}
	}
	return nil
}

// key notes a key, if it is a constant text.
func (w *words) key(key, of ast.Expr) {
	if key.Kind() != ast.LiteralKind || of.Kind() == ast.ListKind {
		return
	}
	if text, is := key.AsLiteral().(types.String); is {
		w.name(string(text), of)
	}
}

// name notes a field or key, and what has it.
func (w *words) name(name string, of ast.Expr) {
	parent, known := lastOf(of)
	if !known {
		return
	}
	if w.children[parent] == nil {
		w.children[parent] = map[string]bool{}
	}
	w.names[name], w.children[parent][name] = true, true
}

// lastOf returns the last field of what an expression names.
func lastOf(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), true
	case ast.IdentKind:
		switch name := e.AsIdent(); name {
		case "object", "oldObject":
			return "", true
		case "variables", "request", "params", "namespaceObject", "authorizer", "Object":
			return "", false
		}
		return items, true
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == "orValue" && call.IsMemberFunction() {
			return lastOf(call.Target())
		}
		if args := e.AsCall().Args(); len(args) == 2 && slices.Contains([]string{operators.OptSelect, operators.Index, operators.OptIndex}, e.AsCall().FunctionName()) && args[1].Kind() == ast.LiteralKind {
			if text, is := args[1].AsLiteral().(types.String); is {
				return string(text), true
			}
			return items, true
		}
	}
	return "", false
}

// near are the constant texts, and others that only begin or end with them.
func (w words) near() []string {
	var all []string
	for _, text := range w.texts {
		all = append(all, text, text+"x", "x"+text)
	}
	return all
}

// isChanged reports whether the part that the mutant changes names a value, or one that is near.
func (w words) isChanged(value any) bool {
	switch value := value.(type) {
	case string:
		return w.changed[value] || w.changed[strings.TrimPrefix(value, "x")] || w.changed[strings.TrimSuffix(value, "x")]
	case int64:
		return slices.ContainsFunc([]int64{value - 1, value, value + 1}, func(n int64) bool { return w.changed[strconv.FormatInt(n, 10)] })
	}
	return false
}

// variation is one change of an object: a value at a path, or nil if it is removed. Those with a lower rank are tried first.
type variation struct {
	what  string
	path  []string
	value any
	rank  int
}

// of returns a copy of an object with the change.
func (v variation) of(object map[string]any) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	set(copied, v.path, v.value)
	return copied
}

// The ranks of changes. That of a change of what the mutant changes is lower by ofChanged.
const (
	without = iota
	oneMore
	withValue
	withField
	ofChanged = 10
)

// variations returns changes of an object, of what expressions name.
func (w words) variations(object map[string]any) []variation {
	v := varier{words: w}
	v.visit(object, nil)
	slices.SortStableFunc(v.all, func(a, b variation) int { return a.rank - b.rank })
	return v.all
}

type varier struct {
	words
	all []variation
}

// mostVariations limits the variations of one object, of which mostTried are tried.
const mostVariations = 1000

// put adds a change.
func (v *varier) put(rank int, what string, path []string, value any, changed bool) {
	if len(v.all) == mostVariations {
		return
	}
	if changed {
		rank -= ofChanged
	}
	switch value.(type) {
	case string, int64, bool:
		what = fmt.Sprintf("%s %v", what, value)
	}
	v.all = append(v.all, variation{what, path, value, rank})
}

// visit varies the values in a value. The apiVersion, the kind, the name and the namespace of the object stay.
func (v *varier) visit(value any, path []string) {
	switch value := value.(type) {
	case map[string]any:
		v.absent(value, path)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := append(slices.Clone(path), name)
			if !slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.generateName"}, strings.Join(at, ".")) {
				v.vary(value[name], at)
				v.visit(value[name], at)
			}
		}
	case []any:
		for i, each := range value {
			at := append(slices.Clone(path), strconv.Itoa(i))
			v.vary(each, at)
			v.visit(each, at)
		}
		v.another(value, path)
	}
}

// nameOf returns the last field or key in a path.
func nameOf(path []string) string {
	for _, name := range slices.Backward(path) {
		if _, err := strconv.Atoi(name); err != nil {
			return name
		}
	}
	return ""
}

// vary replaces or removes a value.
func (v *varier) vary(value any, path []string) {
	name := nameOf(path)
	if !v.names[name] {
		return
	}
	at := strings.Join(path, ".")
	v.put(without, "without "+at, path, nil, v.changed[name])
	switch value := value.(type) {
	case string:
		for _, text := range v.near() {
			v.put(withValue, "with "+at, path, text, v.isChanged(text))
		}
	case int64:
		for _, number := range v.numbers {
			for _, near := range []int64{number - 1, number, number + 1} {
				v.put(withValue, "with "+at, path, near, v.isChanged(near))
			}
		}
	case bool:
		v.put(withValue, "with "+at, path, !value, v.changed[name])
	case []any:
		v.put(withValue, "with an empty "+at, path, []any{}, v.changed[name])
	}
}

// absent adds what a map does not have: fields that the expressions name, and to a map of texts the constants as keys. Without a
// schema, the type of a field is a guess.
func (v *varier) absent(value map[string]any, path []string) {
	parent := nameOf(path)
	if len(path) > 0 && parent != path[len(path)-1] {
		parent = items
	}
	tried := map[string][]any{}
	for name := range v.children[parent] {
		tried[name] = v.guesses(name, 3)
	}
	if text, is := textIn(value); is && v.names[parent] && !slices.Contains([]string{"metadata", "spec", items}, parent) {
		for name := range v.children[parent] {
			tried[name] = []any{text}
			for _, each := range v.texts {
				tried[name] = append(tried[name], each)
			}
		}
		for _, key := range v.near() {
			if tried[key] == nil {
				tried[key] = []any{text}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tried)) {
		if _, has := value[key]; has || key == "" {
			continue
		}
		at := append(slices.Clone(path), key)
		what := "with " + strings.Join(at, ".")
		for _, each := range tried[key] {
			v.put(withField, what, at, each, v.isChanged(key) || v.isChanged(each))
		}
		for _, name := range slices.Sorted(maps.Keys(value)) { // initContainers like containers
			if list, _ := value[name].([]any); len(list) > 0 {
				for _, each := range v.varied(list[0], name) {
					v.put(max(oneMore, each.rank), what+each.what, at, []any{each.value}, v.isChanged(key))
				}
			}
		}
	}
}

// textIn returns one of the values of a map that has only texts.
func textIn(value map[string]any) (string, bool) {
	text, is := "", false
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if text, is = value[key].(string); !is {
			return "", false
		}
	}
	return text, is
}

// guesses are possible values of a field, to a depth: with the fields that the expressions name, or else the constants in calls with it, or one of each type.
func (v *varier) guesses(name string, depth int) []any {
	var all []any
	for _, child := range slices.Sorted(maps.Keys(v.children[name])) {
		if depth == 0 {
			break
		}
		for _, value := range v.guesses(child, depth-1) {
			all = append(all, map[string]any{child: value})
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, each := range v.compared[name] {
		switch each := each.(type) {
		case string:
			all = append(all, each, each+"x", "x"+each)
		case int64:
			all = append(all, each, each-1, each+1)
		case bool:
			all = append(all, each, !each)
		}
	}
	if len(all) > 0 {
		return all
	}
	return []any{true, false, "x", int64(1)}
}

// another adds one more item to a list: a constant, or a copy of the first one with a change.
func (v *varier) another(list []any, path []string) {
	if len(list) == 0 {
		return
	}
	name, what := nameOf(path), "with one more of "+strings.Join(path, ".")
	switch first := list[0].(type) {
	case string:
		for _, text := range v.near() {
			if v.names[name] {
				v.put(oneMore, what+": "+text, path, append(slices.Clone(list), text), v.isChanged(text))
			}
		}
	case map[string]any:
		for _, each := range v.varied(first, name) {
			v.put(max(oneMore, each.rank), what+each.what, path, append(slices.Clone(list), each.value), each.rank < 0)
		}
	}
}

// varied returns copies of an item of a list as values, each with another name and one change. Name is that of the list.
func (v *varier) varied(first any, name string) []variation {
	fields, is := first.(map[string]any)
	if !is || !v.names[name] {
		return nil
	}
	item := runtime.DeepCopyJSON(fields)
	if name, is := item["name"].(string); is {
		item["name"] = name + "-2"
	}
	one := varier{words: v.words}
	one.visit(item, []string{name, "0"})
	for i, each := range one.all {
		each.path = each.path[2:]
		one.all[i].value, one.all[i].what = each.of(item), strings.Replace(" "+each.what, name+".0.", "", 1)
	}
	return one.all
}
