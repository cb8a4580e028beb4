package object

import (
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Text is a string in a YAML file.
type Text struct {
	// Lines are the lines of the file. Line and Column are where the text begins, from 1.
	Lines        []string
	Line, Column int
	Style        yaml.Style
	Value        string
}

// Locate returns the position in the file of a character of a string: that of a line and column, from 1 and in
// characters, of its value. It is the position of the text itself if the text has no such character, if its line is
// in several lines of the file, or if it has escapes.
func (t Text) Locate(line, column int) (fileLine, fileColumn int) {
	lines := strings.Split(t.Value, "\n")
	at, from := t.Line, t.Column-1
	if t.Style&yaml.LiteralStyle != 0 {
		at, from = t.Line+line, 0 // after the header
	} else if line != 1 {
		return t.Line, t.Column
	}
	if line < 1 || line > len(lines) || column < 1 || column > utf8.RuneCountInString(lines[line-1]) || at > len(t.Lines) {
		return t.Line, t.Column
	}
	whole := []rune(t.Lines[at-1])
	before, _, found := strings.Cut(string(whole[min(from, len(whole)):]), lines[line-1])
	if !found || strings.Trim(before, ` "'`) != "" {
		return t.Line, t.Column
	}
	return at, from + utf8.RuneCountInString(before) + column
}
