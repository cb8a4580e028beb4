package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	// File is the import path of the package, and the name of the file. Line and Column are where the change
	// begins.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Operator says what the change is.
	Operator string `json:"operator"`
	// Before and After are the text that is replaced, and the text that replaces it.
	Before string `json:"before"`
	After  string `json:"after"`

	offset int // offset of Before in the file, in bytes
}

// id names a mutant: two mutants of one version of Kubernetes never have the same.
func (m mutant) id() string {
	return fmt.Sprintf("%s:%d:%d %s %q", m.File, m.Line, m.Column, m.Operator, m.After)
}

// apply returns the file with the change.
func (m mutant) apply(text []byte) []byte {
	return slices.Concat(text[:m.offset], []byte(m.After), text[m.offset+len(m.Before):])
}

// maker makes the mutants of one file.
type maker struct {
	name  string
	text  []byte
	files *token.FileSet
	ran   func(position) bool
	made  []mutant
}

// mutants returns the mutants of a file, in the order of their places in the file. Only statements
// that ran have mutants.
func mutants(name string, text []byte, ran func(position) bool) ([]mutant, error) {
	m := &maker{name: name, text: text, files: token.NewFileSet(), ran: ran}
	file, err := parser.ParseFile(m.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse the source: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
			m.function(f.Type, f.Body)
			ast.Inspect(f.Body, m.node)
		}
	}
	slices.SortStableFunc(m.made, func(a, b mutant) int { return a.offset - b.offset })
	return m.made, nil
}

func (m *maker) offset(p token.Pos) int { return m.files.Position(p).Offset }

func (m *maker) source(n ast.Node) string { return string(m.text[m.offset(n.Pos()):m.offset(n.End())]) }

// replace adds the mutant that replaces a part of the file, if the statement at that place ran.
func (m *maker) replace(operator string, from, to token.Pos, after string) {
	at := m.files.Position(from)
	if !m.ran(position{Line: at.Line, Column: at.Column}) {
		return
	}
	m.made = append(m.made, mutant{
		File: m.name, Line: at.Line, Column: at.Column, Operator: operator,
		Before: string(m.text[at.Offset:m.offset(to)]), After: after, offset: at.Offset,
	})
}

// insert adds the mutant that begins a block with a statement.
func (m *maker) insert(operator string, block *ast.BlockStmt, statement string) {
	if len(block.List) > 0 {
		first := block.List[0].Pos()
		m.replace(operator, first, first, statement+"; ")
	}
}

// function adds the mutants of a whole function.
func (m *maker) function(of *ast.FuncType, body *ast.BlockStmt) {
	if of.Results == nil {
		m.insert("return early", body, "return")
		return
	}
	results := of.Results.List
	if last, ok := results[len(results)-1].Type.(*ast.Ident); !ok || last.Name != "error" {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // a function literal has its own results
		case *ast.ReturnStmt:
			m.nilError(n)
		}
		return true
	})
}

// nilError adds the mutant that returns nil for an error.
func (m *maker) nilError(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	if name, ok := last.(*ast.Ident); ok && name.Name == "nil" {
		return
	}
	if _, call := last.(*ast.CallExpr); call && len(r.Results) == 1 && !strings.Contains(m.source(last), "rr") {
		return // the call may return more values than an error
	}
	m.replace("return nil for an error", last.Pos(), last.End(), "nil")
}

// node adds the mutants of a node.
func (m *maker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		m.function(n.Type, n.Body)
	case *ast.IfStmt:
		if equality, ok := n.Cond.(*ast.BinaryExpr); !ok || equality.Op != token.EQL && equality.Op != token.NEQ { // see comparison
			m.replace("negate a condition", n.Cond.Pos(), n.Cond.End(), "!("+m.source(n.Cond)+")")
		}
		if other, ok := n.Else.(*ast.BlockStmt); ok {
			m.drop("drop an else", other)
		}
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.statements(n.Body)
	case *ast.RangeStmt:
		m.skipFirst(n)
	case *ast.BinaryExpr:
		m.comparison(n)
	case *ast.ReturnStmt:
		if last := len(n.Results) - 1; last > 0 && m.isError(n.Results[last]) {
			ast.Inspect(n.Results[last], m.node) // a caller that gets an error does not use the other results
			return false
		}
	case *ast.CallExpr:
		return !isText(n)
	case *ast.BasicLit:
		m.literal(n)
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			m.replace("change a constant", n.Pos(), n.End(), other)
		}
	case *ast.CompositeLit:
		m.elements(n)
	}
	return true
}

// isError reports whether a result is an error. It decides by the names that Kubernetes uses for
// errors and for functions that make them.
func (m *maker) isError(result ast.Expr) bool {
	switch r := result.(type) {
	case *ast.Ident:
		return r.Name == "err" || strings.HasSuffix(r.Name, "Err")
	case *ast.CallExpr:
		return calls(r, "fmt.Errorf", "errors", "apierrors")
	}
	return false
}

// drop adds the mutant that empties a block.
func (m *maker) drop(operator string, block *ast.BlockStmt) {
	if len(block.List) > 0 {
		m.replace(operator, block.List[0].Pos(), block.List[len(block.List)-1].End(), "")
	}
}

// statements adds the mutants that drop one statement.
func (m *maker) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt:
		case *ast.BranchStmt:
			if s.Label != nil {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		if isLog(statement) {
			continue
		}
		m.replace("drop a statement", statement.Pos(), statement.End(), "{}")
	}
}

// isLog reports whether a statement only writes to the log or is about traces of time.
func isLog(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && calls(call, "klog", "span", "trace", "tracing", "utilruntime")
	case *ast.DeferStmt:
		return calls(s.Call, "klog", "span", "trace", "tracing", "utilruntime")
	}
	return false
}

// isText reports whether a call only formats a string for people.
func isText(call *ast.CallExpr) bool {
	return calls(call, "klog", "span", "trace", "tracing") || calls(call, "fmt", "errors") && !calls(call, "errors.Is", "errors.As")
}

// calls reports whether the function that a call names begins with one of these names.
func calls(call *ast.CallExpr, names ...string) bool {
	var path []string
	for f := call.Fun; f != nil; {
		switch n := f.(type) {
		case *ast.SelectorExpr:
			path, f = append(path, n.Sel.Name), n.X
		case *ast.CallExpr:
			f = n.Fun
		case *ast.Ident:
			path, f = append(path, n.Name), nil
		default:
			f = nil
		}
	}
	slices.Reverse(path)
	full := strings.Join(path, ".") + "."
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(full, name+".") })
}

// skipFirst adds the mutant in which a loop passes over its first item.
func (m *maker) skipFirst(loop *ast.RangeStmt) {
	name, ok := loop.Key.(*ast.Ident)
	if !ok || loop.Tok != token.DEFINE {
		return
	}
	if name.Name != "_" {
		m.insert("skip an item of a loop", loop.Body, "if "+name.Name+" == 0 { continue }")
		return
	}
	if len(loop.Body.List) == 0 {
		return
	}
	// The key gets a name: the text from it to the first statement is replaced.
	first := loop.Body.List[0].Pos()
	rest := string(m.text[m.offset(name.End()):m.offset(first)])
	m.replace("skip an item of a loop", name.Pos(), first, "mutated"+rest+"if mutated == 0 { continue }; ")
}

// comparison adds the mutant with another comparison operator.
func (m *maker) comparison(e *ast.BinaryExpr) {
	other, ok := map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS,
		token.GTR: token.GEQ, token.GEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND,
	}[e.Op]
	if ok {
		m.replace("change a comparison", e.OpPos, e.OpPos+token.Pos(len(e.Op.String())), other.String())
	}
}

// literal adds the mutant with another number or another word.
func (m *maker) literal(l *ast.BasicLit) {
	switch l.Kind {
	case token.INT:
		if value, err := strconv.ParseInt(l.Value, 0, 64); err == nil {
			m.replace("change a constant", l.Pos(), l.End(), strconv.FormatInt(value+1, 10))
		}
	case token.STRING:
		if word := strings.Trim(l.Value, "\"`"); word != "" && !strings.ContainsAny(word, " %") {
			m.replace("change a constant", l.Pos(), l.End(), `"mutated"`)
		}
	}
}

// elements adds the mutants that drop one element of a list.
func (m *maker) elements(l *ast.CompositeLit) {
	if _, list := l.Type.(*ast.ArrayType); !list {
		return
	}
	for i, element := range l.Elts {
		end := l.Rbrace
		if i+1 < len(l.Elts) {
			end = l.Elts[i+1].Pos()
		}
		m.replace("drop an element of a list", element.Pos(), end, "")
	}
}
