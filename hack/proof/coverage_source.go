package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// source has what coverage needs to know about a Go file.
type source struct {
	generated bool
	functions []function // in the order of the file
	guards    []guard
	lines     []string
}

// guard is the body of an if statement that handles a case which does not happen.
type guard struct {
	kind       guardKind
	start, end position
}

type guardKind int

const (
	noGuard    guardKind = iota
	typeGuard            // if !ok, after the type of a value was asserted
	readyGuard           // if !WaitForReady()
)

// function is a function, a method, or a variable whose value has function literals.
type function struct {
	name       string
	start, end position
}

// parseSource parses a Go file.
func parseSource(name string, text []byte) (source, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parse the source: %w", err)
	}
	at := func(p token.Pos) position {
		full := files.PositionFor(p, false)
		return position{Line: full.Line, Column: full.Column}
	}
	s := source{generated: ast.IsGenerated(file), lines: strings.Split(string(text), "\n")}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			s.functions = append(s.functions, function{functionName(d), at(d.Pos()), at(d.End())})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) > 0 {
					s.functions = append(s.functions, function{"var " + v.Names[0].Name, at(v.Pos()), at(v.End())})
				}
			}
		}
	}
	asserted := assertions(file)
	ast.Inspect(file, func(n ast.Node) bool {
		if i, ok := n.(*ast.IfStmt); ok {
			if kind := guardOf(i, asserted); kind != noGuard {
				s.guards = append(s.guards, guard{kind, at(i.Body.Pos()), at(i.Body.End())})
			}
		}
		return true
	})
	return s, nil
}

// assertions returns the if statements whose condition is about the assertion of a type: in the
// statement before it or in itself.
func assertions(file *ast.File) map[*ast.IfStmt]bool {
	found := map[*ast.IfStmt]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if assertsType(n.Init) {
				found[n] = true
			}
		case *ast.BlockStmt:
			mark(n.List, found)
		case *ast.CaseClause:
			mark(n.Body, found)
		}
		return true
	})
	return found
}

func mark(list []ast.Stmt, found map[*ast.IfStmt]bool) {
	for i, statement := range list {
		if s, ok := statement.(*ast.IfStmt); ok && i > 0 && assertsType(list[i-1]) {
			found[s] = true
		}
	}
}

// assertsType reports whether a statement is value, ok := x.(T).
func assertsType(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 2 || len(a.Rhs) != 1 {
		return false
	}
	name, ok := a.Lhs[1].(*ast.Ident)
	if _, asserted := a.Rhs[0].(*ast.TypeAssertExpr); !asserted || !ok {
		return false
	}
	return name.Name == "ok"
}

// guardOf returns the kind of an if statement.
func guardOf(i *ast.IfStmt, asserted map[*ast.IfStmt]bool) guardKind {
	not, ok := i.Cond.(*ast.UnaryExpr)
	if !ok || not.Op != token.NOT {
		return noGuard
	}
	switch x := not.X.(type) {
	case *ast.Ident:
		if x.Name == "ok" && asserted[i] {
			return typeGuard
		}
	case *ast.CallExpr:
		if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "WaitForReady" {
			return readyGuard
		}
	}
	return noGuard
}

// guarded returns the kind of the guard that a position is in.
func (s source) guarded(p position) guardKind {
	i := slices.IndexFunc(s.guards, func(g guard) bool { return !p.before(g.start) && p.before(g.end) })
	if i < 0 {
		return noGuard
	}
	return s.guards[i].kind
}

// functionName returns the name of a function as Go's stack traces write it: Name, Type.Name or
// (*Type).Name.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	typ, pointer := d.Recv.List[0].Type, false
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ, pointer = t.X, true
		case *ast.ParenExpr:
			typ = t.X
		case *ast.IndexExpr: // a type parameter
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			if pointer {
				return "(*" + t.Name + ")." + d.Name.Name
			}
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// at returns the function that a position is in.
func (s source) at(p position) (function, bool) {
	i := slices.IndexFunc(s.functions, func(f function) bool { return !p.before(f.start) && p.before(f.end) })
	if i < 0 {
		return function{}, false
	}
	return s.functions[i], true
}
