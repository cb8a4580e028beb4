package scenario

import (
	"errors"
	"fmt"
	"strings"
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

// Errors returns every *Error in an error of [Load], in order, and nil
// for other errors.
func Errors(err error) []*Error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []*Error
		for _, one := range joined.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	}
	var one *Error
	if errors.As(err, &one) {
		return []*Error{one}
	}
	return nil
}
