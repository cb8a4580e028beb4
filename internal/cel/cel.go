// Package cel reads the CEL expressions of policies: it parses them, writes parts of them as text, and finds the paths that they read
// of objects. It uses the parser of cel-go, which knows no types. Macros, such as has and all, stay calls.
package cel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// Parse returns the root of an expression, and where its parts are.
func Parse(text string) (ast.Expr, *ast.SourceInfo, error) {
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true), parser.EnableIdentEscapeSyntax(true))
	if err != nil {
		return nil, nil, fmt.Errorf("make a parser: %w", err)
	}
	parsed, errs := p.Parse(common.NewTextSource(text))
	if len(errs.GetErrors()) > 0 {
		return nil, nil, errors.New("parse expression: " + errs.GetErrors()[0].Message)
	}
	return parsed.Expr(), parsed.SourceInfo(), nil
}

// Visit calls a function for each part of an expression, the outer parts first. It does nothing if the text does not parse.
func Visit(text string, f func(ast.Expr)) {
	if root, _, err := Parse(text); err == nil {
		ast.PreOrderVisit(root, ast.NewExprVisitor(f))
	}
}

// HasOptionalElement reports whether an expression has a list with an optional element: [?a].
func HasOptionalElement(text string) (has bool) {
	Visit(text, func(part ast.Expr) {
		has = has || part.Kind() == ast.ListKind && len(part.AsList().OptionalIndices()) > 0
	})
	return has
}

// Constants returns the strings and integers in expressions, each once.
func Constants(expressions ...string) []any {
	var found []any
	for _, each := range expressions {
		Visit(each, func(part ast.Expr) {
			if part.Kind() != ast.LiteralKind {
				return
			}
			value := part.AsLiteral().Value()
			switch value.(type) {
			case string, int64:
				if value != "" && !slices.Contains(found, value) {
					found = append(found, value)
				}
			}
		})
	}
	return found
}

// Texts returns the strings in expressions, each once.
func Texts(expressions ...string) []string {
	var found []string
	for _, each := range Constants(expressions...) {
		if text, ok := each.(string); ok {
			found = append(found, text)
		}
	}
	return found
}

// Literal returns the string that a part of an expression is.
func Literal(part ast.Expr) (string, bool) {
	if part.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := part.AsLiteral().(types.String)
	return string(text), ok
}

// Names reports whether an expression uses one of some variables.
func Names(text string, variables ...string) bool {
	found := false
	Visit(text, func(part ast.Expr) {
		found = found || part.Kind() == ast.IdentKind && slices.Contains(variables, part.AsIdent())
	})
	return found
}

// Text returns a part of an expression as text, in one line.
func Text(part ast.Expr) (string, error) {
	text, err := parser.Unparse(part, ast.NewSourceInfo(nil), parser.WrapOnColumn(math.MaxInt32))
	if err != nil {
		return "", fmt.Errorf("write expression: %w", err)
	}
	return text, nil
}

// Start returns the line and column, from 1, at which a part of an expression begins.
func Start(part ast.Expr, info *ast.SourceInfo) [2]int {
	first := ast.OffsetRange{Start: math.MaxInt32}
	ast.PreOrderVisit(part, ast.NewExprVisitor(func(inner ast.Expr) {
		if at, ok := info.GetOffsetRange(inner.ID()); ok && at.Start < first.Start {
			first = at
		}
	}))
	if first.Start == math.MaxInt32 {
		return [2]int{1, 1}
	}
	return position(first.Start, info)
}

// Operator returns the line and column, from 1, of the operator of a call such as a && b.
func Operator(call ast.Expr, info *ast.SourceInfo) [2]int {
	at, _ := info.GetOffsetRange(call.ID())
	return position(at.Start, info)
}

func position(offset int32, info *ast.SourceInfo) [2]int {
	at := info.GetLocationByOffset(offset)
	return [2]int{at.Line(), at.Column() + 1}
}
