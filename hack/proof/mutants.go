package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// One kube-apiserver has all mutants. Each is text that is inserted around a statement or a condition, and that
// does nothing unless the mutant is selected: the file numberFile beside the program has its number. The insertions
// have no line breaks, so lines keep their numbers.

// numberFile is the name of the file with the number of the mutant that runs, or 0. The program does not start
// without it.
const numberFile = "mutant"

// selectedFile is the name of the file with selectedText, which each changed package gets.
const selectedFile = "zz_selected_mutant.go"

// selectedText is the file of a package, with a verb for its name. The function has no dependency of our own.
const selectedText = `package %s

import (
	"os"
	"path/filepath"
)

var selectedMutantNumber = readSelectedMutant()

func readSelectedMutant() string {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	number, err := os.ReadFile(filepath.Join(filepath.Dir(program), "` + numberFile + `"))
	if err != nil {
		panic(err)
	}
	return string(number)
}

func selectedMutant(number string) bool { return number == selectedMutantNumber }
`

// mutant is one change of one file.
type mutant struct {
	// File is the import path of the package, and the name of the file. Line and Column are where the change
	// begins.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Change says what is changed in Code.
	Change string `json:"change"`
	Code   string `json:"code"`

	from, to      int    // offsets in the file
	before, after string // what is inserted there, with # for the condition that the mutant is selected
}

// id names a mutant: two mutants of one version of Kubernetes never have the same.
func (m mutant) id() string { return fmt.Sprintf("%s:%d:%d %s", m.File, m.Line, m.Column, m.Change) }

// finder finds the mutants of one file.
type finder struct {
	name  string
	text  []byte
	files *token.FileSet
	ran   func(token.Position) bool
	found []mutant
}

// mutants returns the mutants of a file, outer ones before inner ones, and the name of its package. Only what ran
// has mutants.
func mutants(name string, text []byte, ran func(token.Position) bool) ([]mutant, string, error) {
	f := &finder{name: name, text: text, files: token.NewFileSet(), ran: ran}
	file, err := parser.ParseFile(f.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, "", fmt.Errorf("parse the source: %w", err)
	}
	if !ast.IsGenerated(file) {
		ast.Inspect(file, f.node)
	}
	return f.found, file.Name.Name, nil
}

// source returns the text of a node.
func (f *finder) source(n ast.Node) string {
	return string(f.text[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}

// add adds the mutant that inserts text before and after a node, if the node ran.
func (f *finder) add(change string, n ast.Node, before, after string) {
	if at := f.files.Position(n.Pos()); f.ran(at) {
		f.found = append(f.found, mutant{
			File: f.name, Line: at.Line, Column: at.Column, Change: change, Code: strings.Join(strings.Fields(f.source(n)), " "),
			from: at.Offset, to: f.files.Position(n.End()).Offset, before: before, after: after,
		})
	}
}

// node adds the mutants of a node.
func (f *finder) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		f.function(n.Type, n.Body)
	case *ast.FuncLit:
		f.function(n.Type, n.Body)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LAND, token.LOR:
			f.condition(n.X)
			f.condition(n.Y)
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			f.add("negate a condition", n, "((", ") != #)")
		}
	}
	return true
}

// condition adds the mutant that negates a condition. Comparisons, and operands of && and ||, have their own.
func (f *finder) condition(e ast.Expr) {
	if _, binary := ast.Unparen(e).(*ast.BinaryExpr); !binary {
		f.add("negate a condition", e, "((", ") != #)")
	}
}

// function adds the mutants of a whole function.
func (f *finder) function(of *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || len(body.List) == 0 {
		return
	}
	if of.Results == nil {
		f.add("return early", body.List[0], "if # { return }; ", "")
		return
	}
	last := of.Results.List[len(of.Results.List)-1].Type
	if name, ok := last.(*ast.Ident); !ok || name.Name != "error" {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // it has its own results
		case *ast.ReturnStmt:
			if len(n.Results) == of.Results.NumFields() {
				f.nilError(n)
			}
		}
		return true
	})
}

// nilError adds the mutant that returns nil for an error.
func (f *finder) nilError(r *ast.ReturnStmt) {
	last := r.Results[len(r.Results)-1]
	if name, ok := last.(*ast.Ident); ok && name.Name == "nil" {
		return
	}
	others := "return "
	for _, result := range r.Results[:len(r.Results)-1] {
		others += f.source(result) + ", "
	}
	if !strings.ContainsAny(others, "#\n") {
		f.add("return nil for an error", r, "if # { "+others+"nil }; ", "")
	}
}

// statements adds the mutants that drop one statement.
func (f *finder) statements(list []ast.Stmt) {
	for _, statement := range list {
		var call *ast.CallExpr
		switch s := statement.(type) {
		case *ast.ExprStmt:
			call, _ = s.X.(*ast.CallExpr)
		case *ast.DeferStmt:
			call = s.Call
		case *ast.IncDecStmt, *ast.GoStmt:
		case *ast.BranchStmt:
			if s.Label != nil || s.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		if call == nil || !f.unseen(call) {
			f.add("drop a statement", statement, "if !# { ", " }")
		}
	}
}

// unseen reports whether a call only writes to the log or is about traces of time, or is a panic, without which a
// function may have no end.
func (f *finder) unseen(call *ast.CallExpr) bool {
	name, _, _ := strings.Cut(f.source(call.Fun), ".")
	return slices.Contains([]string{"klog", "span", "trace", "tracing", "utilruntime", "panic"}, name)
}

// withMutants returns a file with mutants, which have the order of mutants, by number.
func withMutants(text []byte, numbers []int, all []mutant) []byte {
	type insertion struct {
		at   int
		text string
	}
	var begins, ends []insertion
	for _, number := range numbers {
		m := all[number-1]
		selected := fmt.Sprintf("selectedMutant(\"%d\")", number)
		begins = append(begins, insertion{m.from, strings.ReplaceAll(m.before, "#", selected)})
		ends = append(ends, insertion{m.to, strings.ReplaceAll(m.after, "#", selected)})
	}
	slices.Reverse(ends) // inner ones end first
	insertions := slices.Concat(ends, begins)
	slices.SortStableFunc(insertions, func(a, b insertion) int { return a.at - b.at })
	var out bytes.Buffer
	at := 0
	for _, i := range insertions {
		out.Write(text[at:i.at])
		out.WriteString(i.text)
		at = i.at
	}
	out.Write(text[at:])
	return out.Bytes()
}
