package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Error is one thing wrong in one file.
type Error struct {
	// File is the path as it was given, or as it was found in a given folder.
	File string
	// Line and Column count from 1, columns in characters. Both are 1 for an error of
	// the whole file, and 0 for a folder or a file that cannot be read.
	Line, Column int
	// Message says what is wrong and, after a semicolon, what was expected.
	Message string
	// Hint says what to do. It may be empty.
	Hint string
}

// Error returns "file:line:column: what is wrong; what was expected; what to do".
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&text, ":%d:%d", e.Line, e.Column)
	}
	text.WriteString(": " + e.Message)
	if e.Hint != "" {
		text.WriteString("; " + e.Hint)
	}
	return text.String()
}

// Errors returns every *Error in an error of Load or LoadPaths, in order, and nil
// for other errors.
func Errors(err error) []*Error {
	switch joined := err.(type) { //nolint:errorlint // this function walks the tree of errors itself
	case nil:
		return nil
	case *Error:
		return []*Error{joined}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, one := range joined.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	default:
		return Errors(errors.Unwrap(err))
	}
}

// compare orders errors by file and position.
func (e *Error) compare(other *Error) int {
	return cmp.Or(cmp.Compare(e.File, other.File), cmp.Compare(e.Line, other.Line), cmp.Compare(e.Column, other.Column))
}

// join sorts errors by the rank of their file and by position, removes duplicates,
// and joins them.
func join(list []*Error, rank map[string]int) error {
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), a.compare(b))
	})
	list = slices.CompactFunc(list, func(a, b *Error) bool { return *a == *b })
	all := make([]error, len(list))
	for i, one := range list {
		all[i] = one
	}
	return errors.Join(all...)
}

// didYouMean returns `did you mean "x"?` with the candidate that is most similar to
// a misspelt name, or "" if none is similar.
func didYouMean(name string, candidates []string) string {
	return strings.TrimPrefix(suggest.DidYouMean(name, candidates), "; ")
}

// suggestOrList returns didYouMean, or a list of the candidates if none is similar,
// or none if there are no candidates.
func suggestOrList(name string, candidates []string, none string) string {
	if hint := didYouMean(name, candidates); hint != "" {
		return hint
	}
	const few = 12
	switch {
	case len(candidates) == 0:
		return none
	case len(candidates) > few:
		return fmt.Sprintf("there are %s and %d more", strings.Join(candidates[:few], ", "), len(candidates)-few)
	default:
		return "there are " + strings.Join(candidates, ", ")
	}
}
