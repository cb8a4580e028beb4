package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/suggest"
)

// Error is one thing wrong in one file.
type Error struct {
	// File is the path as it was given, or as it was found below a given folder.
	File string
	// Line and Column count from 1, columns in characters. They are 1 where the
	// whole file is meant, and 0 where nothing could be read or it is a folder.
	Line, Column int
	// Message says what is wrong and, after a semicolon, what was expected.
	Message string
	// Hint says what to do. Empty where Message says it all.
	Hint string
}

// Error returns "file:line:column: what; what was expected; what to do".
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

// Errors returns every *Error that Load or LoadPaths joined in err, in order.
func Errors(err error) []*Error {
	switch joined := err.(type) { //nolint:errorlint // the tree itself is what is asked for
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

// compare orders errors by file and place.
func (e *Error) compare(other *Error) int {
	return cmp.Or(cmp.Compare(e.File, other.File), cmp.Compare(e.Line, other.Line), cmp.Compare(e.Column, other.Column))
}

// join sorts errors by place within each file, keeping the order of the files
// given by rank, drops repeated ones, and joins them.
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

// didYouMean returns `did you mean "x"?` for the candidate nearest to a
// misspelt name, or "" if none is near.
func didYouMean(name string, candidates []string) string {
	return strings.TrimPrefix(suggest.DidYouMean(name, candidates), "; ")
}

// suggestOrList returns didYouMean, or where nothing is near what there is.
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

// shown quotes a text of a file for a message, cut to a readable length.
func shown(text string) string {
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		return fmt.Sprintf("%q…", string(runes[:longest]))
	}
	return fmt.Sprintf("%q", text)
}
